package cli

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// Cases from the field: connections and servers in trouble, through the tool.
// docs/cases.md says what each one is.

// TestN01Passwords: special characters in a password, in the URI and as a
// setting; it is never echoed.
func TestN01Passwords(t *testing.T) {
	const password = `p@s:s/w#rd%25?[x]`
	engine := chtest.Start(t, chtest.Options{User: "et l", Password: password})
	schema := chtest.SchemaOn(t, engine.Server)
	uri := toolOn(t, engine.Server, schema)
	setting := uri
	setting.env = []string{"MELTANO_STATE_BACKEND_URI=" + uriOf(chtest.Server{Host: engine.Host, Port: engine.Port, User: "et l"}, "schema="+schema)}
	setting = setting.with("password=" + password)
	for _, tool := range asTools(uri, setting) {
		tool.run(exitDone, "set", "a", "--force", good)
		tool.run(exitDone, "get", "a", "--verbose")
		if out := tool.run(exitDone, "config") + *tool.said; strings.Contains(out, "p@s") || strings.Contains(out, "rd%") {
			t.Errorf("the password is shown: %s", out)
		}
	}
	wrong := uri.with("password=not it#/")
	wrong.refuses(exitConnect, []string{"516"}, "get", "a")
	if strings.Contains(*wrong.said, "not it") {
		t.Error(*wrong.said)
	}
}

func TestN02ServiceWakesUp(t *testing.T) {
	tool, p := proxied(t)
	tool = tool.with("connect_timeout=1")
	for _, fault := range []faultproxy.Fault{
		faultproxy.When("hello", faultproxy.Times(1, faultproxy.Delay(3*time.Second, nil))),
		faultproxy.Times(2, faultproxy.Delay(1500*time.Millisecond, faultproxy.Status(503, "upstream unavailable"))),
	} {
		p.On(fault)
		tool.run(exitDone, "set", "a", "--force", good)
		if n := strings.Count(*tool.said, "waiting for ClickHouse"); n != 1 {
			t.Errorf("said %d times: %s", n, *tool.said)
		}
	}
}

func TestN03PortsMixedUp(t *testing.T) {
	tool := newTool(t)
	tls := httptest.NewUnstartedServer(nil)
	tls.Config.ErrorLog = quiet
	tls.StartTLS()
	defer tls.Close()
	native, err := faultproxy.Listen(faultproxy.NativePort)
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	for _, c := range []struct {
		address  net.Addr
		secure   string
		patterns []string
	}{
		{plain.Listener.Addr(), "true", []string{"does not speak TLS", "secure=false"}},
		{tls.Listener.Addr(), "false", []string{"secure=true"}},
		{native.Addr(), "false", []string{"native protocol", "8123"}},
		{native.Addr(), "true", []string{"protocol=http with secure=true"}},
	} {
		tool.refuses(exitConnect, c.patterns, "list", "--lock-wait-seconds", "0.1", "--host", "127.0.0.1",
			"--port", fmt.Sprint(c.address.(*net.TCPAddr).Port), "--secure="+c.secure, "--verify=false")
	}
	// 8443 means TLS, unless told otherwise.
	tool.env = []string{"MELTANO_STATE_BACKEND_URI=clickhouse://u:p@h:8443/d"}
	if out := tool.run(exitDone, "config"); !matches(`(?m)^secure +true`, out) {
		t.Error(out)
	}
	if out := tool.run(exitDone, "config", "--secure=false"); !matches(`(?m)^secure +false`, out) {
		t.Error(out)
	}
}

func TestN05ReadOnlyUser(t *testing.T) {
	for _, mode := range []int{1, 2} {
		tool, p := proxied(t)
		tool.run(exitDone, "set", "a", "--force", good)
		p.On(faultproxy.ReadOnly(mode))
		if got := tool.run(exitDone, "get", "a"); got != good+"\n" {
			t.Error(got)
		}
		for _, args := range [][]string{{"list"}, {"list", "--long"}, {"export"}, {"bookmarks", "a"}, {"history", "a"}, {"lock", "list"}} {
			tool.run(exitDone, args...)
		}
		for _, args := range [][]string{{"set", "a", "--force", good}, {"clear", "a", "--force"}, {"clear", "--all", "--force"}} {
			tool.refuses(exitFailed, []string{"164 READONLY", "readonly"}, args...)
		}
		p.On(nil)
		tool.unlocked()
	}
}

// TestN06PreparedTables: where an administrator made the tables, SELECT and
// INSERT are enough, and no DDL is sent; ALTER DELETE is for clear.
func TestN06PreparedTables(t *testing.T) {
	tool, p := proxied(t)
	for st := range strings.SplitSeq(tool.run(exitDone, "init", "--print-sql"), ";\n") {
		if st = strings.TrimSpace(st); st != "" && !strings.Contains(st, "GRANT ") {
			tool.sql(st)
		}
	}
	for _, tool := range asTools(tool, tool.with("create_tables=never")) {
		p.On(faultproxy.Grants("INSERT"))
		p.Take()
		tool.run(exitDone, "set", "a", "--force", good)
		tool.run(exitDone, "merge", "a", good)
		tool.run(exitDone, "list", "--long")
		tool.run(exitDone, "export")
		tool.run(exitDone, "history", "a")
		tool.refuses(exitFailed, []string{"497 ACCESS_DENIED", "GRANT ALTER DELETE"}, "clear", "a", "--force")
		p.On(faultproxy.Grants("INSERT", "DELETE"))
		tool.run(exitDone, "clear", "a", "--force")
		for _, r := range p.Take() {
			switch r.Kind() {
			case "hello", "probe", "SELECT", "INSERT", "DELETE":
			default:
				t.Errorf("sent: %.200s", r.Text)
			}
		}
	}
	tool.unlocked()
}

func TestN07ClusterGrant(t *testing.T) {
	tool, p := proxied(t)
	tool = tool.with("cluster=prod")
	p.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
		return strings.Contains(r.Text, "ON CLUSTER") &&
			faultproxy.Exception(497, "ACCESS_DENIED", "etl: Not enough privileges. To execute this query, it's necessary to have the grant CLUSTER ON *.*")(out, r)
	})
	tool.run(exitFailed, "set", "a", "--force", good)
	tool.says("497 ACCESS_DENIED", "GRANT CLUSTER ON", "init --print-sql")
	p.Take()
	tool.with("create_tables=never").run(exitFailed, "set", "a", "--force", good)
	for _, r := range p.Take() {
		if r.Kind() == "CREATE" {
			t.Errorf("sent: %s", r.Text)
		}
	}
}

// TestN08Database: the tables lie in the schema, as the older plugin's, whatever
// database the URI names; `doctor` says so.
func TestN08Database(t *testing.T) {
	engine := chtest.Start(t, chtest.Options{})
	engine.SQL(t, "CREATE DATABASE meltano")
	engine.SQL(t, "CREATE TABLE meltano.state (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3)) ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id")
	engine.SQL(t, `INSERT INTO meltano.state (state_id, completed_state) VALUES ('a', '{"singer_state":{"by":"the older plugin"}}')`)
	tool := toolOn(t, engine.Server, "meltano")
	tool.env = tool.env[:1] // the URI alone: …/analytics
	if got := tool.run(exitDone, "get", "a"); !strings.Contains(got, "the older plugin") {
		t.Error(got)
	}
	tool.run(exitDone, "set", "a", "--force", good)
	if got := engine.SQL(t, "SELECT completed_state FROM meltano.state FINAL"); got != good {
		t.Error(got)
	}
	if out := tool.run(exitDone, "doctor"); !matches(`schema meltano; the database analytics of the settings is only named`, out) {
		t.Error(out)
	}
	if n := engine.SQL(t, "SELECT count() FROM system.databases WHERE name = 'analytics'"); n != "0" {
		t.Error("the database analytics was made")
	}
}

func TestN11ConnectionsThatIdled(t *testing.T) {
	tool, p := proxied(t)
	p.On(faultproxy.Any(faultproxy.Idle(200*time.Millisecond), faultproxy.When("SELECT", faultproxy.Delay(300*time.Millisecond, nil))))
	tool.run(exitDone, "set", "a", "--force", good)
	if *tool.said != "State for a was set.\n" {
		t.Errorf("said %s", *tool.said)
	}
}

func TestN13IPv6(t *testing.T) {
	engine := chtest.Start(t, chtest.Options{Listen: "[::1]:0"})
	tool := toolOn(t, engine.Server, chtest.SchemaOn(t, engine.Server))
	if !strings.Contains(tool.env[0], "@[::1]:") {
		t.Fatal(tool.env[0])
	}
	tool.run(exitDone, "set", "a", "--force", good)
	tool.env[0] = strings.Replace(tool.env[0], "[::1]", "elsewhere.invalid", 1)
	for _, host := range []string{"::1", "[::1]"} {
		if got := tool.run(exitDone, "get", "a", "--host", host); got != good+"\n" {
			t.Error(got)
		}
	}
}

func TestN16N17FailuresThatPass(t *testing.T) {
	t.Parallel() // it waits for the most part
	for _, c := range []struct {
		name    string
		code    int
		pattern string
		fault   faultproxy.Fault
	}{
		{"242", exitFailed, "242 TABLE_IS_READ_ONLY.*try again later", faultproxy.Code(242)},
		{"225", exitFailed, "225 NO_ZOOKEEPER.*Keeper", faultproxy.Code(225)},
		{"999", exitFailed, "999 KEEPER_EXCEPTION.*Keeper", faultproxy.Code(999)},
		{"252", exitFailed, "252 TOO_MANY_PARTS.*inserts come faster than merges", faultproxy.Code(252)},
		{"503", exitFailed, "HTTP 503", faultproxy.Status(503, "")},
		{"cut", exitConnect, "the connection was cut", faultproxy.Cut},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool, p := proxied(t)
			tool.run(exitDone, "set", "a", "--force", good)
			for _, kind := range []string{"INSERT", "SELECT"} {
				p.On(faultproxy.When(kind, faultproxy.Times(2, c.fault)))
				tool.run(exitDone, "set", "a", "--force", good)
			}
			p.On(faultproxy.When("DELETE", faultproxy.Times(2, c.fault)))
			tool.run(exitDone, "clear", "a", "--force")
			p.On(c.fault)
			start := time.Now()
			tool.refuses(c.code, []string{c.pattern}, "set", "a", "--force", good, "--lock-wait-seconds", "1")
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("given up after %s", took)
			}
			p.On(nil)
			tool.unlocked()
		})
	}
	// What does not pass is not repeated.
	for code, pattern := range map[int]string{60: "60 UNKNOWN_TABLE", 81: "81 UNKNOWN_DATABASE", 497: "GRANT INSERT", 516: "check user"} {
		tool, p := proxied(t)
		tool.run(exitDone, "set", "a", "--force", good)
		p.On(faultproxy.Any(faultproxy.Code(code)))
		want := exitFailed
		if code == 516 {
			want = exitConnect
		}
		tool.refuses(want, []string{pattern}, "get", "a")
	}
}

func TestR08UnfinishedDelete(t *testing.T) {
	tool, p := proxied(t)
	tool.run(exitDone, "set", "a", "--force", good)
	tool.run(exitDone, "set", "b", "--force", good)
	p.On(faultproxy.When("DELETE", faultproxy.ExceptionAfter(341)))
	tool.run(exitDone, "clear", "a", "--force")
	tool.run(exitNoState, "get", "a")
	tool.run(exitDone, "clear", "--all", "--force")
	if got := tool.run(exitDone, "list"); got != "" {
		t.Errorf("left: %s", got)
	}
	tool.unlocked()
}

// TestR04R10Tables: rows dated in the future, and a projection.
func TestR04R10Tables(t *testing.T) {
	tool := newTool(t)
	tool.run(exitDone, "set", "b", "--force", good)
	tool.sql(`INSERT INTO $.state VALUES ('a', NULL, '{"old":1}', toDateTime64('2030-01-01 00:00:00', 3))`)
	tool.run(exitDone, "set", "a", "--force", good)
	if got := tool.run(exitDone, "get", "a"); got != good+"\n" {
		t.Errorf("R04: %s", got)
	}
	tool.sql("ALTER TABLE $.state MODIFY SETTING deduplicate_merge_projection_mode = 'drop'")
	tool.sql("ALTER TABLE $.state ADD PROJECTION p (SELECT state_id, count() GROUP BY state_id)")
	tool.run(exitDone, "set", "a", "--force", good)
	if code := tool.code("clear", "a", "--force"); code == exitDone {
		tool.run(exitNoState, "get", "a")
	} else {
		tool.says("344", "projection")
	}
	tool.unlocked()
}
