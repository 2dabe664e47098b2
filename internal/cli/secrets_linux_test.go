package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
	"github.com/chstate/chstate/internal/testca"
)

// canary is a secret that nothing may show; in a URI it looks different.
const (
	canary    = "cAnArY%#/x"
	canaryURI = "cAnArY%25%23%2Fx"
	bird      = "cAnArY" // what both have
)

// commands gives each command of the tool, with arguments that it could take,
// so that a new one is tried as well.
func commands(t *testing.T) [][]string {
	t.Helper()
	args := map[string][]string{
		"set": {"a", good, "--force"}, "merge": {"a", good}, "copy": {"a", "b", "--force"}, "move": {"a", "b", "--force"},
		"clear": {"a", "--force"}, "edit": {"a"}, "reset": {"a", "--stream", "s", "--force"}, "import": {caseFile("export_mixed.json")}, "check": {caseFile("floats.json")},
		"rollback": {"a", "--to", "1h", "--force"}, "run": {"a", "--", "true"}, "release": {"a", "--force"},
	}
	var all [][]string
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		if c.HasSubCommands() {
			for _, sub := range c.Commands() {
				walk(sub, append(path[:len(path):len(path)], sub.Name()))
			}
			return
		}
		switch c.Name() {
		case "hold", "helper": // these do not end
		default:
			all = append(all, path) // without arguments, with one, and with good ones
			all = append(all, append(path[:len(path):len(path)], "a"))
			if more := args[c.Name()]; more != nil {
				all = append(all, append(path[:len(path):len(path)], more...))
			}
		}
	}
	walk(Command(), nil)
	if len(all) < 40 {
		t.Fatalf("only %d commands", len(all))
	}
	return all
}

// TestSecretsAreNotShown: a password or token, wherever it stands, is in
// nothing that any command prints, whether it succeeds or fails.
func TestSecretsAreNotShown(t *testing.T) {
	engine := chtest.Start(t, chtest.Options{User: "etl", Password: canary})
	strict := chtest.Start(t, chtest.Options{User: "etl", Password: "another"})
	gone := engine.Server
	gone.Port = 1
	page := faultproxy.Start(engine.URL())
	defer page.Close()
	page.On(faultproxy.Page(403, "Sign in"))
	portal := engine.Server
	portal.Host, portal.Port = page.Address()

	dir := t.TempDir()
	secretFile := filepath.Join(dir, "password")
	for file, text := range map[string]string{secretFile: canary + "\n", filepath.Join(dir, "meltano.yml"): "version: 1\n", filepath.Join(dir, ".env"): ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for where, s := range map[string]chtest.Server{"good": engine.Server, "wrong password": strict.Server, "nobody listens": gone, "a web page": portal} {
		address := fmt.Sprintf("%s:%d/analytics?schema=%s", s.Host, s.Port, chtest.SchemaOn(t, engine.Server))
		for how, env := range map[string][]string{
			"URI":           {"MELTANO_STATE_BACKEND_URI=clickhouse://etl:" + canaryURI + "@" + address},
			"setting":       {"MELTANO_STATE_BACKEND_URI=clickhouse://etl@" + address, "MELTANO_STATE_BACKEND_CLICKHOUSE_PASSWORD=" + canary},
			"last resort":   {"MELTANO_STATE_BACKEND_URI=clickhouse://etl@" + address, "CLICKHOUSE_PASSWORD=" + canary},
			"password_file": {"MELTANO_STATE_BACKEND_URI=clickhouse://etl@" + address + "&password_file=" + secretFile},
			"token":         {"MELTANO_STATE_BACKEND_URI=clickhouse://" + address, "MELTANO_STATE_BACKEND_CLICKHOUSE_ACCESS_TOKEN=" + canary},
			"raw URI":       {"MELTANO_STATE_BACKEND_URI=clickhouse://etl:" + canary + "@" + address},
			"wrong scheme":  {"MELTANO_STATE_BACKEND_URI=postgresql://etl:" + canaryURI + "@" + address},
			"proxy":         {"MELTANO_STATE_BACKEND_URI=clickhouse://etl:" + canaryURI + "@" + address, "MELTANO_STATE_BACKEND_CLICKHOUSE_HTTP_PROXY=http://u:" + canaryURI + "@127.0.0.1:1"},
		} {
			for _, args := range commands(t) {
				if where != "good" && len(args) > 1 && args[len(args)-1] == "a" { // each once is enough
					continue
				}
				var out bytes.Buffer
				flags := []string{"--verbose", "--lock-wait-seconds", "0", "--connect-timeout", "1"}
				if i := slices.Index(args, "--"); i >= 0 {
					args = append(append(append([]string{}, args[:i]...), flags...), args[i:]...)
				} else {
					args = append(append([]string{}, args...), flags...)
				}
				Main(t.Context(), args, append(env, "EDITOR=true"), strings.NewReader(""), &out, &out)
				if i := strings.Index(out.String(), bird); i >= 0 {
					t.Errorf("%s, %s: chstate %q shows it: …%.100s", where, how, args, out.String()[max(0, i-60):])
				}
			}
		}
	}
}

// TestSecretsAreInNoArgument: while the tool works as a process, and as the
// add-on's helper, no process's command line holds the secret, and the
// helper's environment does not either: it came through its standard input.
func TestSecretsAreInNoArgument(t *testing.T) {
	engine := chtest.Start(t, chtest.Options{User: "etl", Password: canary})
	tool := toolOn(t, engine.Server, chtest.SchemaOn(t, engine.Server))
	hold := tool.start("lock", "hold", "a", "--verbose")
	run := tool.start("lock", "run", "a", "--", "sleep", "30")
	until(t, "both locks are held", func() bool {
		return strings.Count(tool.run(exitDone, "lock", "list"), "holds") == 2
	})
	uri := tool.env[0]
	tool.env = nil
	helper := tool.start("version")
	helper.ends(t)
	again := &process{Cmd: exec.Command(helper.Path, "helper")}
	again.Env = []string{}
	stdin, err := again.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := again.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	again.Stderr = &again.err
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(stdin, "{\"id\":1,\"op\":\"init\",\"uri\":%q,\"settings\":{},\"command\":\"test\",\"log_level\":\"DEBUG\"}\n{\"id\":2,\"op\":\"get\",\"state_id\":\"a\"}\n",
		strings.TrimPrefix(uri, "MELTANO_STATE_BACKEND_URI="))
	said := make([]byte, 0, 4096)
	for !bytes.Contains(said, []byte(`"id":2`)) {
		b := make([]byte, 4096)
		n, err := stdout.Read(b)
		said = append(said, b[:n]...)
		if err != nil {
			t.Fatalf("%v: %s %s", err, said, &again.err)
		}
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		seen++
		if bytes.Contains(line, []byte(bird)) {
			t.Errorf("%s: %q", file, line)
		}
	}
	if seen < 4 {
		t.Errorf("only %d processes were seen", seen)
	}
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", again.Process.Pid)); err != nil || bytes.Contains(env, []byte(bird)) {
		t.Errorf("the helper's environment: %q %v", env, err)
	}
	_ = stdin.Close()
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Error(err)
	}
	again.ends(t)
	_ = hold.Process.Signal(os.Interrupt)
	_ = run.Process.Signal(os.Interrupt)
	hold.ends(t)
	run.ends(t)
	for what, text := range map[string]string{"helper": string(said) + again.err.String(), "lock hold": hold.out.String() + hold.err.String(), "lock run": run.out.String() + run.err.String()} {
		if strings.Contains(text, bird) {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// TestTLS: a server with a certificate of a private authority.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ca, err := testca.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(name string, good time.Duration) chtest.Options {
		cert, key, err := ca.Issue(name, good, net.IPv4(127, 0, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		return chtest.Options{TLSCert: cert, TLSKey: key, User: "etl", Password: canary}
	}
	good := chtest.Start(t, issue("clickhouse.test", time.Hour))
	late := chtest.Start(t, issue("clickhouse.test", -time.Hour))
	for _, c := range []struct {
		server   *chtest.Engine
		settings []string
		pattern  string // empty: it works
	}{
		{good, []string{"ca_cert=" + ca.File}, ""},
		{good, []string{"verify=false"}, ""},
		{good, []string{"ca_cert=" + ca.File, "server_host_name=clickhouse.test"}, ""},
		{good, nil, "authority that is not trusted.*ca_cert"},
		{good, []string{"ca_cert=" + ca.File, "server_host_name=other.test"}, "another name.*server_host_name"},
		{good, []string{"ca_cert=" + ca.File, "host=localhost"}, "another name.*clickhouse.test"},
		{late, []string{"ca_cert=" + ca.File}, "expired"},
		{late, []string{"verify=false"}, ""},
		{good, []string{"secure=false"}, "secure=true|port"},
		{good, []string{"ca_cert=" + filepath.Join(dir, "none.pem")}, "ca_cert.*none.pem"},
	} {
		tool := toolOn(t, c.server.Server, chtest.SchemaOn(t, c.server.Server)).with(c.settings...).with("lock_wait_seconds=0.3")
		if c.pattern == "" {
			tool.run(exitDone, "set", "a", "--force", `{"singer_state":{"x":1}}`)
			tool.run(exitDone, "get", "a")
			continue
		}
		code := tool.code("get", "a")
		if code != exitConnect && code != exitUsage || !matches(c.pattern, *tool.said) || strings.Contains(*tool.said, bird) {
			t.Errorf("%q: code %d, %s", c.settings, code, *tool.said)
		}
	}
}

// TestOddNames: whatever a schema, a table, an id, a pattern or a command holds
// stays a value: nothing else is made or dropped, and everything comes back.
func TestOddNames(t *testing.T) {
	engine := chtest.Start(t, chtest.Options{})
	databases := func() string {
		return engine.SQL(t, "SELECT groupArray(name) FROM (SELECT name FROM system.databases ORDER BY name)")
	}
	before := databases()
	var control strings.Builder
	for c := range rune(0xA0) {
		if c < 0x20 || c >= 0x7F {
			control.WriteRune(c)
		}
	}
	odd := []string{
		"a`b", `a"b'c`, "a.b.c", "a b", "é🦆", `back\slash`, "a;DROP TABLE x;--", "a/*b*/", "?{x:String}", "$1 %s {}", "\u202egnal",
	}
	for _, name := range []string{"tab\there", "line\nbreak", "nul\x00"} { // no name of a table has these
		toolOn(t, engine.Server, name).refuses(exitUsage, []string{"control character"}, "list")
	}
	for i, name := range odd {
		table := odd[(i+1)%len(odd)]
		tool := toolOn(t, engine.Server, name).with("table=" + table)
		ids := []string{name}
		if i == 0 {
			ids = append(ids, "x"+control.String(), "'); DROP TABLE `state`; --")
		}
		for _, id := range ids {
			tool.run(exitDone, "set", "--force", "--", id, good)
			if got := tool.run(exitDone, "get", "--", id); got != good+"\n" {
				t.Errorf("%q in %q.%q: %s", id, name, table, got)
			}
			tool.run(exitDone, "lock", "run", "--", id, "true")
			for _, args := range [][]string{{"history"}, {"bookmarks"}, {"list", "--pattern"}, {"export", "--pattern"}} {
				tool.run(exitDone, append(args, id)...) // as a pattern, an id may match nothing
			}
		}
		var export map[string]any
		unmarshal(t, tool.run(exitDone, "export"), &export)
		if len(export) != len(ids) {
			t.Errorf("%q.%q: exported %d of %d", name, table, len(export), len(ids))
		}
		tool.run(exitDone, "clear", "--force", "--", ids[0])
		tool.run(exitDone, "clear", "--all", "--force")
		if i == 0 {
			tool.run(exitDone, "doctor")
		}
		for _, part := range []string{"", "_lock", "_history"} {
			n := engine.SQL(t, "SELECT count() FROM system.tables WHERE database = '"+sqlText(name)+"' AND name = '"+sqlText(table+part)+"'")
			if n != "1" {
				t.Errorf("%q.%q%s: %s tables", name, table, part, n)
			}
		}
		if n := engine.SQL(t, "SELECT count() FROM system.tables WHERE database = '"+sqlText(name)+"'"); n != "3" {
			t.Errorf("%q has %s tables", name, n)
		}
		engine.SQL(t, "DROP DATABASE `"+strings.ReplaceAll(strings.ReplaceAll(name, `\`, `\\`), "`", "\\`")+"` SYNC")
	}
	if after := databases(); after != before {
		t.Errorf("databases were %s and are %s", before, after)
	}
}

func sqlText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s)
}
