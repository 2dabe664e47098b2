package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate"
)

const (
	someURI = "clickhouse://u:p@h:8123/d"
	prefix  = "MELTANO_STATE_BACKEND_CLICKHOUSE_"
)

func mustResolve(t *testing.T, in Inputs) *Resolved {
	t.Helper()
	if in.Dir == "" {
		in.Dir = t.TempDir()
	}
	r, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustFail(t *testing.T, in Inputs, says ...string) (text string) {
	t.Helper()
	if in.Dir == "" {
		in.Dir = t.TempDir()
	}
	_, err := Resolve(in)
	if !errors.Is(err, chstate.ErrSettings) {
		t.Fatalf("error %v, want one about settings", err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("error %q has more than one line", err)
	}
	return err.Error()
}

func (r *Resolved) value(t *testing.T, name string) Value {
	t.Helper()
	for _, v := range r.Values {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no value %s", name)
	return Value{}
}

// Each source in turn is taken away, strongest first, and the next one counts.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	yml := filepath.Join(dir, "meltano.yml")
	dotenv := filepath.Join(dir, ".env")
	writeFile(t, yml, "state_backend:\n  clickhouse:\n    cluster: from-yml\n")
	writeFile(t, dotenv, prefix+"CLUSTER=from-dotenv\n")
	in := Inputs{
		Dir:   dir,
		Flags: map[string]string{"cluster": "from-flag"},
		Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI + "?cluster=from-uri",
			prefix + "CLUSTER=from-env", "CLICKHOUSE_CLUSTER=from-last-resort"},
	}
	steps := []struct {
		value, source string
		remove        func()
	}{
		{"from-flag", "--cluster", func() { in.Flags = nil }},
		{"from-env", prefix + "CLUSTER in the environment", func() { in.Env = []string{in.Env[0], in.Env[2]} }},
		{"from-dotenv", prefix + "CLUSTER in .env", func() { must(t, os.Remove(dotenv)) }},
		{"from-yml", "meltano.yml", func() { must(t, os.Remove(yml)) }},
		{"from-uri", "the URI's parameter cluster", func() { in.Env[0] = "MELTANO_STATE_BACKEND_URI=" + someURI }},
		{"from-last-resort", "CLICKHOUSE_CLUSTER in the environment", func() { in.Env = in.Env[:1] }},
		{"", "", func() {}},
	}
	for _, step := range steps {
		r := mustResolve(t, in)
		if got, want := r.value(t, "cluster"), (Value{"cluster", step.value, step.source}); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if r.Options.Cluster != step.value {
			t.Errorf("option %q, want %q", r.Options.Cluster, step.value)
		}
		if noticed := len(r.Notices) > 0; noticed != strings.HasPrefix(step.source, "CLICKHOUSE_") {
			t.Errorf("%s: notices %q", step.value, r.Notices)
		}
		step.remove()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestURIPrecedence(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "meltano.yml"), "state_backend.uri: clickhouse://u:p@yml/d\n")
	writeFile(t, filepath.Join(dir, ".env"), "MELTANO_STATE_BACKEND_URI=clickhouse://u:p@dotenv/d\n")
	env := []string{"MELTANO_STATE_BACKEND_URI=clickhouse://u:p@env/d"}
	flags := map[string]string{"uri": "clickhouse://u@flag/d"}
	for _, c := range []struct {
		want string
		in   Inputs
	}{
		{"flag", Inputs{Dir: dir, Env: env, Flags: flags}},
		{"env", Inputs{Dir: dir, Env: env}},
		{"dotenv", Inputs{Dir: dir}},
	} {
		if r := mustResolve(t, c.in); r.Options.Host != c.want {
			t.Errorf("host %q, want %q", r.Options.Host, c.want)
		}
	}
}

// What was typed for this command beats what lies around: the parts of --uri
// count as flags, below the single flags.
func TestURIFlagBeatsEnvironment(t *testing.T) {
	r := mustResolve(t, Inputs{
		Flags: map[string]string{"uri": "clickhouse://u@typed:9999/d", "user": "v"},
		Env:   []string{prefix + "HOST=around", prefix + "PASSWORD=p", "MELTANO_STATE_BACKEND_URI=" + someURI},
	})
	o := r.Options
	if o.Host != "typed" || o.Port != 9999 || o.User != "v" || o.Password != "p" {
		t.Errorf("%+v", o)
	}
	r = mustResolve(t, Inputs{Flags: map[string]string{"uri": someURI}})
	if len(r.Notices) != 1 || !strings.Contains(r.Notices[0], "every user of this machine") {
		t.Errorf("a password in argv: notices %q", r.Notices)
	}
}

func TestDefaultsAreNotSpelledOut(t *testing.T) {
	r := mustResolve(t, Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI}})
	want := chstate.Options{Host: "h", Port: 8123, Database: "d", User: "u", Password: "p", ServerSettings: map[string]string{}}
	if diff := cmp.Diff(want, r.Options); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, v := range r.Values {
		s, _ := find(v.Name)
		if v.Source == "default" && v.Value != s.Default {
			t.Errorf("%s: %q, want %q", v.Name, v.Value, s.Default)
		}
	}
}

func TestEverySettingArrives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file.pem")
	writeFile(t, file, "x")
	given := map[string]string{
		"host": "[2001:DB8::1]", "port": "9441", "database": "db", "user": "me", "secure": "yes", "schema": "meta", "table": "st",
		"protocol": "native", "create_tables": "never", "async_insert": "on", "verify": "false", "ca_cert": file, "client_cert": file,
		"client_cert_key": file, "server_host_name": "name", "proxy_path": "ch/", "http_proxy": "http://proxy:3128", "connect_timeout": "5",
		"send_receive_timeout": "60", "cluster": "c", "engine": "E", "lock_strategy": "settle", "lock_settle_seconds": "0.5",
		"lock_wait_seconds": "0", "lock_linger_seconds": "0", "history_days": "0", "lock_timeout_seconds": "120", "lock_retry_seconds": "2",
		"password": "secret", "uri": "clickhouse://?ch_max_threads=2",
	}
	var env []string
	for _, s := range Settings() {
		text, ok := given[s.Name]
		if !ok && s.Name != "password_file" && s.Name != "access_token" {
			t.Errorf("%s is not tried", s.Name)
		}
		if ok {
			env = append(env, s.Env()+"="+text)
		}
	}
	r := mustResolve(t, Inputs{Env: env})
	want := chstate.Options{
		Host: "2001:db8::1", Port: 9441, Protocol: "native", Secure: true, Database: "db", User: "me", Password: "secret",
		TLS:       chstate.TLS{SkipVerify: true, CACert: file, ClientCert: file, ClientCertKey: file, ServerHostName: "name"},
		ProxyPath: "/ch", HTTPProxy: "http://proxy:3128", ConnectTimeout: 5 * time.Second, SendReceiveTimeout: time.Minute,
		ServerSettings: map[string]string{"max_threads": "2"}, Schema: "meta", Table: "st", CreateTables: "never", Cluster: "c", Engine: "E",
		AsyncInsert: true, HistoryDays: -1,
		Lock: chstate.LockOptions{Strategy: "settle", Lease: 2 * time.Minute, Retry: 2 * time.Second, Wait: -1, Linger: -1, Settle: time.Second / 2},
	}
	if diff := cmp.Diff(want, r.Options); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, v := range r.Values[:len(Settings())] {
		if given[v.Name] != "" && !strings.HasSuffix(v.Source, " in the environment") {
			t.Errorf("%+v", v)
		}
	}
	if v := r.value(t, "ch_max_threads"); v.Value != "2" {
		t.Errorf("%+v", v)
	}
}

// L02: lock settings arrive as texts.
func TestL02LockTimes(t *testing.T) {
	env := func(v string) Inputs {
		return Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI, "MELTANO_STATE_BACKEND_LOCK_TIMEOUT_SECONDS=" + v}}
	}
	if r := mustResolve(t, env("10")); r.Options.Lock.Lease != 10*time.Second {
		t.Errorf("lease %v", r.Options.Lock.Lease)
	}
	for _, v := range []string{"abc", "0", "-1", "121", "1.5"} {
		mustFail(t, env(v), "state_backend.lock_timeout_seconds is \""+v+"\"", "MELTANO_STATE_BACKEND_LOCK_TIMEOUT_SECONDS in the environment", "from 1 to 120")
		if _, err := FromAddon(someURI, map[string]any{"lock_timeout_seconds": v}); !errors.Is(err, chstate.ErrSettings) {
			t.Errorf("%s by the add-on: %v", v, err)
		}
	}
}

// A name that is nearly a setting is told, with the one that is meant, but not its value.
func TestStrayNames(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"meltano.yml": "env:\n  MELTANO_STATE_BACKEND_CLICKHOUSE_TABEL: x\nstate_backend.clickhouse.usr: me\n",
		".env":        "MELTANO_STATE_BACKEND_CLICKHOUSE_PASSWRD=s3cret\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := mustResolve(t, Inputs{Dir: dir, Env: []string{
		"MELTANO_STATE_BACKEND_URI=" + someURI, "MELTANO_STATE_BACKEND_CLICKHOUSE_LOCK_TIMEOUT_SECONDS=10",
		"MELTANO_STATE_BACKEND_CLICKHOUSE_HOST=h", "MELTANO_STATE_BACKEND_S3_HOST=h", "MELTANO_STATE_BACKEND_CLICKHOUSE_ÖÄ\x00=1",
	}})
	want := []string{
		"MELTANO_STATE_BACKEND_CLICKHOUSE_LOCK_TIMEOUT_SECONDS in the environment is no setting and has no effect: perhaps MELTANO_STATE_BACKEND_LOCK_TIMEOUT_SECONDS is meant",
		"MELTANO_STATE_BACKEND_CLICKHOUSE_PASSWRD in .env is no setting and has no effect: perhaps MELTANO_STATE_BACKEND_CLICKHOUSE_PASSWORD is meant",
		"MELTANO_STATE_BACKEND_CLICKHOUSE_TABEL in the env of meltano.yml is no setting and has no effect: perhaps MELTANO_STATE_BACKEND_CLICKHOUSE_TABLE is meant",
		"state_backend.clickhouse.usr in meltano.yml is no setting and has no effect: perhaps state_backend.clickhouse.user is meant",
	}
	if diff := cmp.Diff(want, r.Notices); diff != "" {
		t.Error(diff)
	}
}

func TestAddonValues(t *testing.T) {
	r, err := FromAddon("", map[string]any{
		"uri": "clickhouse://@h/d", "user": "me", "password": json.Number("12345678901234567890"), "port": 9999, "secure": true,
		"lock_timeout_seconds": float64(20), "lock_retry_seconds": int64(3), "history_days": "7", "lock_wait_seconds": json.Number("0.5"),
		"table": nil, "schema": "", "something_newer": []any{1},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := chstate.Options{
		Host: "h", Port: 9999, Secure: true, Database: "d", User: "me", Password: "12345678901234567890", ServerSettings: map[string]string{},
		HistoryDays: 7, Lock: chstate.LockOptions{Lease: 20 * time.Second, Retry: 3 * time.Second, Wait: time.Second / 2},
	}
	if diff := cmp.Diff(want, r.Options); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, v := range map[string]any{
		"password": 1.5, "user": true, "table": []any{"x"}, "port": 1.5, "secure": 2, "cluster": map[string]any{}, "history_days": -1,
		"schema": json.Number("1e5"), "lock_strategy": "zookeeper", "verify": "maybe",
	} {
		_, err := FromAddon(someURI, map[string]any{name: v})
		if !errors.Is(err, chstate.ErrSettings) || !strings.Contains(err.Error(), "state_backend.clickhouse."+name) || !strings.Contains(err.Error(), "from Meltano") {
			t.Errorf("%s=%v: %v", name, v, err)
		}
	}
}

// Settings beat the URI in everything, one by one.
func TestAddonSettingsOverURI(t *testing.T) {
	r, err := FromAddon("clickhouse://u:p@h:8443/d?table=t", map[string]any{"host": "other", "port": 8123, "table": "s"})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.Options; o.Host != "other" || o.Port != 8123 || o.Secure || o.Table != "s" || o.User != "u" {
		t.Errorf("%+v", o)
	}
}

func TestMissing(t *testing.T) {
	for _, c := range []struct{ uri, says string }{
		{"clickhouse://:p@h/d", "state_backend.clickhouse.user is required"},
		{"clickhouse://u:p@h", "state_backend.clickhouse.database is required"},
		{"", "no ClickHouse is named"},
	} {
		in := Inputs{Dir: t.TempDir(), Env: []string{"MELTANO_STATE_BACKEND_URI=" + c.uri}}
		mustFail(t, in, c.says, "clickhouse://user:password@host:8123/database")
		r, err := Resolve(in)
		if !errors.Is(err, ErrMissing) {
			t.Errorf("%v is not ErrMissing", err)
		}
		if r == nil || len(r.Values) != len(Settings()) {
			t.Errorf("beside it, for `chstate config`: %+v", r)
		}
	}
	mustFail(t, Inputs{Flags: map[string]string{"uri": "systemdb"}}, "Meltano's own database", "--uri")
	mustResolve(t, Inputs{Flags: map[string]string{"user": "u", "database": "d"}})
}

func TestLogin(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		writeFile(t, name, text)
		return name
	}
	good := file("good", "from the file\r\n")
	for _, c := range []struct {
		name            string
		in              Inputs
		password, token string
		fail            string
	}{
		{name: "file", in: Inputs{Flags: map[string]string{"uri": "clickhouse://u@h/d", "password_file": good}}, password: "from the file"},
		{name: "file in the URI", in: Inputs{Flags: map[string]string{"uri": "clickhouse://u@h/d?password_file=" + good}}, password: "from the file"},
		{name: "setting over URI", in: Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI, prefix + "PASSWORD_FILE=" + good}}, password: "from the file"},
		{name: "flag over setting", in: Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI, prefix + "PASSWORD=x"}, Flags: map[string]string{"password_file": good}}, password: "from the file"},
		{name: "password over last resort", in: Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI, "CLICKHOUSE_PASSWORD_FILE=" + good}}, password: "p"},
		{name: "token over URI's password", in: Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI, prefix + "ACCESS_TOKEN=tok"}}, token: "tok"},
		{name: "token without user", in: Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=clickhouse://h/d", prefix + "ACCESS_TOKEN=tok"}}, token: "tok"},
		{name: "two of one source", in: Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI + "?password_file=" + good}}, fail: "both set"},
		{name: "two settings", in: Inputs{Env: []string{"MELTANO_STATE_BACKEND_URI=" + someURI, prefix + "PASSWORD=x", prefix + "ACCESS_TOKEN=y"}}, fail: "both set"},
		{name: "no file", in: Inputs{Flags: map[string]string{"uri": "clickhouse://u@h/d", "password_file": dir + "/none"}}, fail: "none\", which cannot be read: no such file"},
		{name: "a folder", in: Inputs{Flags: map[string]string{"uri": "clickhouse://u@h/d", "password_file": dir}}, fail: "cannot be read"},
		{name: "empty", in: Inputs{Flags: map[string]string{"uri": "clickhouse://u@h/d", "password_file": file("empty", "\n")}}, fail: "which is empty"},
		{name: "lines", in: Inputs{Flags: map[string]string{"uri": "clickhouse://u@h/d", "password_file": file("lines", "Geheim\nwOrt\n")}}, fail: "more than one line"},
		{name: "long", in: Inputs{Flags: map[string]string{"uri": "clickhouse://u@h/d", "password_file": file("long", strings.Repeat("Geheim", 20000))}}, fail: "too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.fail != "" {
				checkNoSecret(t, "the error", mustFail(t, c.in, c.fail))
				return
			}
			r := mustResolve(t, c.in)
			if o := r.Options; o.Password != c.password || o.AccessToken != c.token {
				t.Errorf("password %q, token %q", o.Password, o.AccessToken)
			}
			if c.password != "" && r.value(t, "password").Value != "***" {
				t.Errorf("%+v", r.value(t, "password"))
			}
		})
	}
}

// Files with a secret that everybody can read are named, once each.
func TestReadableSecrets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("Windows has no such permissions")
		return
	}
	dir := t.TempDir()
	yml, dotenv, file := filepath.Join(dir, "meltano.yml"), filepath.Join(dir, ".env"), filepath.Join(dir, "pw")
	writeFile(t, file, "x\n")
	for _, c := range []struct{ yml, dotenv, noticed string }{
		{"state_backend.uri: " + someURI, "", yml},
		{"state_backend.uri: clickhouse://u:$PW@h/d", "PW=secret", ""},
		{"state_backend.uri: clickhouse://u@h/d", prefix + "PASSWORD=x", dotenv},
		{"env:\n  " + prefix + "PASSWORD: x\nstate_backend.uri: clickhouse://u@h/d", "", yml},
		{"state_backend.uri: clickhouse://u@h/d\nstate_backend.clickhouse.password_file: " + file, "", file},
		{"state_backend.uri: clickhouse://u@h/d\nstate_backend.clickhouse.table: t", prefix + "SCHEMA=s", ""},
	} {
		for _, open := range []bool{true, false} {
			writeFile(t, yml, c.yml)
			writeFile(t, dotenv, c.dotenv)
			mode := os.FileMode(0o600)
			if open {
				mode = 0o644
			}
			for _, name := range []string{yml, dotenv, file} {
				must(t, os.Chmod(name, mode))
			}
			r := mustResolve(t, Inputs{Dir: dir})
			want := open && c.noticed != ""
			if noticed := len(r.Notices) == 1 && strings.HasPrefix(r.Notices[0], c.noticed+" holds "); noticed != want || len(r.Notices) > 1 {
				t.Errorf("%s, %o: notices %q", c.yml, mode, r.Notices)
			}
		}
	}
}

func TestProjectNamed(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a", "meltano.yml"), "state_backend.uri: "+someURI)
	for _, in := range []Inputs{
		{Project: filepath.Join(dir, "a")}, {Project: filepath.Join(dir, "a", "meltano.yml")}, {Dir: dir, Project: "a"},
		{Env: []string{"MELTANO_PROJECT_ROOT=" + filepath.Join(dir, "a")}},
		{Project: filepath.Join(dir, "a"), Env: []string{"MELTANO_PROJECT_ROOT=" + dir}},
	} {
		if r := mustResolve(t, in); r.Options.Host != "h" {
			t.Errorf("%+v: %+v", in, r.Options)
		}
	}
	mustFail(t, Inputs{Project: dir}, "no meltano.yml", dir, "--project")
	mustFail(t, Inputs{Env: []string{"MELTANO_PROJECT_ROOT=" + dir}}, "no meltano.yml", "MELTANO_PROJECT_ROOT")
}

func TestLastResort(t *testing.T) {
	r := mustResolve(t, Inputs{Env: []string{"CLICKHOUSE_HOST=ch", "CLICKHOUSE_USER=me", "CLICKHOUSE_PASSWORD=Geheim", "CLICKHOUSE_DATABASE=db", "CLICKHOUSE_PORT="}})
	if o := r.Options; o.Host != "ch" || o.User != "me" || o.Password != "Geheim" || o.Database != "db" || o.Port != 8123 {
		t.Errorf("%+v", o)
	}
	if len(r.Notices) != 1 || !strings.Contains(r.Notices[0], "CLICKHOUSE_HOST in the environment, CLICKHOUSE_DATABASE") || !strings.Contains(r.Notices[0], prefix+"HOST") {
		t.Errorf("notices %q", r.Notices)
	}
	checkNoSecret(t, "notices", fmt.Sprint(r.Notices))
	// Nothing of it within Meltano.
	if _, err := FromAddon("clickhouse://h", nil); !errors.Is(err, ErrMissing) {
		t.Errorf("error %v", err)
	}
}

func TestPortHints(t *testing.T) {
	for uri, says := range map[string]string{
		"clickhouse://u:p@h:9000/d":                 "use port 8123 (8443 with TLS)",
		"clickhouse://u:p@h:9440/d":                 "use port 8443 with secure=true",
		"clickhouse://u:p@h:8123/d?protocol=native": "use port 9000",
		"clickhouse://u:p@h:8443/d?protocol=native": "use port 9000 (9440 with TLS)",
		"clickhouse://u:p@h:9000/d?protocol=native": "",
		"clickhouse://u:p@h:1234/d":                 "",
	} {
		r, err := FromAddon(uri, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Notices, ""); (says == "") != (got == "") || !strings.Contains(got, says) {
			t.Errorf("%s: notices %q, want %q", uri, got, says)
		}
	}
}

// Whatever is wrong with a project's file, its text is not shown.
func TestBrokenProjects(t *testing.T) {
	for name, c := range map[string]struct{ yml, dotenv, says string }{
		"no YAML":     {"state_backend:\n  uri: 'clickhouse://u:Geheim\n@x", "", "is not YAML, at line"},
		"a list":      {"- Geheim", "", "not a mapping"},
		"not UTF-8":   {"a: 1", "A=\xffGeheim", "not UTF-8"},
		"a loop":      {"state_backend: &a\n  clickhouse: *a\n", "", "nested too deep"},
		"merge loop":  {"state_backend: &a\n  <<:\n    <<: *a\n", "", "nested too deep"},
		"env a list":  {"env: [Geheim]", "", "its env is not a mapping"},
		"include out": {"include_paths: [../x.yml]", "", "leaves the project"},
		"include abs": {"include_paths: [/x.yml]", "", "not relative"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "meltano.yml"), c.yml)
			writeFile(t, filepath.Join(dir, ".env"), c.dotenv)
			checkNoSecret(t, "the error", mustFail(t, Inputs{Dir: dir}, c.says))
		})
	}
}

func TestIncludeOutOfTheProject(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "elsewhere.yml"), "state_backend.uri: "+someURI)
	writeFile(t, filepath.Join(dir, "project", "meltano.yml"), "include_paths: ['*.yml']")
	if err := os.Symlink(filepath.Join(dir, "elsewhere.yml"), filepath.Join(dir, "project", "link.yml")); err != nil {
		t.Fatal(err)
	}
	mustFail(t, Inputs{Dir: filepath.Join(dir, "project")}, "out of the project")
}

func TestUnknownFlagIsOurMistake(t *testing.T) {
	if _, err := Resolve(Inputs{Flags: map[string]string{"nonsense": "x"}}); err == nil || errors.Is(err, chstate.ErrSettings) {
		t.Errorf("error %v", err)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings() {
		if seen[s.Name] || s.Help == "" || !strings.HasSuffix(s.Help, ".") {
			t.Errorf("%+v", s)
		}
		seen[s.Name] = true
		if s.Secret != (s.Flag() == "") {
			t.Errorf("%s: flag %q", s.Name, s.Flag())
		}
		if s.Default != "" {
			if _, bad := s.parse(s.Default); bad != nil {
				t.Errorf("%s: its own default is refused: %s", s.Name, bad.reason)
			}
		}
	}
	host, _ := find("host")
	if host.Key() != "state_backend.clickhouse.host" || host.Env() != prefix+"HOST" || host.Param() != "host" {
		t.Errorf("%+v", host)
	}
	lease, _ := find("lock_timeout_seconds")
	if lease.Env() != "MELTANO_STATE_BACKEND_LOCK_TIMEOUT_SECONDS" || lease.Param() != "" || lease.Flag() != "lock-timeout-seconds" {
		t.Errorf("%+v", lease)
	}
}

func BenchmarkResolve(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "meltano.yml"), []byte("state_backend:\n  uri: "+someURI+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Resolve(Inputs{Dir: dir, Env: os.Environ()}); err != nil {
			b.Fatal(err)
		}
	}
}
