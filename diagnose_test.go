package chstate_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

// findings gives the report as lines, for wantFinding.
func findings(t testing.TB, s *chstate.Store) string {
	t.Helper()
	var b strings.Builder
	for _, f := range s.Diagnose(t.Context()) {
		fmt.Fprintf(&b, "%s %s: %s — %s\n", f.Level, f.Check, f.Detail, f.Advice)
		if f.Level != chstate.OK && f.Advice == "" {
			t.Errorf("what to do about it? %+v", f)
		}
		if strings.Contains(f.Detail+f.Advice, "\n") || strings.Contains(f.Detail, "s3cret") {
			t.Errorf("more than a line, or a secret: %+v", f)
		}
	}
	return b.String()
}

func wantFindings(t testing.TB, report string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(report, w) {
			t.Errorf("the report lacks %q:\n%s", w, report)
		}
	}
}

func TestDiagnoseHealthy(t *testing.T) {
	o := options(t)
	o.Database = "analytics"
	s := open(t, o)
	must(t, s.Set(t.Context(), chstate.State{ID: "a", Completed: raw(finished)}))
	report := findings(t, s)
	wantFindings(t, report, "ok reach: http://", "ok login: as user", "ok server: ClickHouse ", "ok grants: SELECT ON "+o.Schema+".state, INSERT ON",
		"ok tables: "+o.Schema+".state, ReplacingMergeTree", "the database analytics of the settings is only named",
		"ok lock: strategy table", "ok replicas: one server answers", "ok clock: the server's is", "ok answers: within", "state: 1 rows in 1 parts", "ok states: 1")
	if strings.Contains(report, "warn ") || strings.Contains(report, "fail ") {
		t.Errorf("all is well, but:\n%s", report)
	}
}

// Looking makes no tables.
func TestDiagnoseBeforeTheFirstUse(t *testing.T) {
	o := options(t)
	s := open(t, o)
	wantFindings(t, findings(t, s), "warn tables: "+o.Schema+".state does not exist yet — the first write makes it")
	if got := chtest.SQL(t, "SELECT count() FROM system.databases WHERE name = '"+o.Schema+"'"); got != "0" {
		t.Error("the schema was made")
	}
	o.Lock.Strategy = "settle"
	wantFindings(t, findings(t, open(t, o)), "warn lock: strategy settle: each claim waits 1s")
	o.Lock.Strategy = "keeper"
	wantFindings(t, findings(t, open(t, o)), "warn lock: strategy keeper, whose KeeperMap table does not exist yet")
	o.CreateTables = "never"
	wantFindings(t, findings(t, open(t, o)), "fail lock: strategy keeper, whose KeeperMap table does not exist yet", "fail tables: "+o.Schema+".state does not exist, or may not be seen — let an administrator")
}

func TestDiagnoseTrouble(t *testing.T) {
	o := options(t)
	s := open(t, o)
	must(t, s.Set(t.Context(), chstate.State{ID: "2026-08-01T120000--tap-a--target-b", Completed: raw(finished)}))
	chtest.SQL(t, fmt.Sprintf(`INSERT INTO %s.state VALUES ('twice', NULL, '"{\\"a\\":1}"', now64(3)), ('future', NULL, ' {}', '2090-01-01 00:00:00'), ('null', 'null', '', now64(3))`, o.Schema))
	chtest.SQL(t, fmt.Sprintf("ALTER TABLE %s.state MODIFY SETTING deduplicate_merge_projection_mode = 'drop'", o.Schema))
	chtest.SQL(t, fmt.Sprintf("ALTER TABLE %s.state ADD PROJECTION p (SELECT state_id ORDER BY updated_at)", o.Schema))
	report := findings(t, s)
	wantFindings(t, report, `fail states: 1 with a half that is no JSON object: "twice" — `,
		`warn states: 1 under an id made of the time, which no later run reads: "2026-08-01T120000--tap-a--target-b"`,
		`warn states: 1 dated later than the server's clock: "future"`, `warn storage: `+o.Schema+`.state has a projection`)

	chtest.SQL(t, fmt.Sprintf("DROP TABLE %s.state", o.Schema))
	chtest.SQL(t, fmt.Sprintf("CREATE TABLE %s.state (state_id String, updated_at DateTime64(3)) ENGINE = MergeTree ORDER BY state_id", o.Schema))
	wantFindings(t, findings(t, s), "fail tables: "+o.Schema+".state is not what it must be: column completed_state")
}

func TestDiagnoseUnreachable(t *testing.T) {
	o := options(t)
	o.Password, o.User = "s3cret", "nobody-of-that-name"
	wantFindings(t, findings(t, open(t, o)), "fail login: http://", "516")
	o.Port = 1
	s := open(t, o)
	wantFindings(t, findings(t, s), "fail reach: http://")
	if found := s.Diagnose(t.Context()); len(found) != 1 || !errors.Is(found[0].Err, chstate.ErrConnect) {
		t.Errorf("got %+v", found)
	}
}

// Two servers behind one address share neither states nor locks, unless their
// tables are replicated.
func TestDiagnoseSeveralServers(t *testing.T) {
	t.Parallel()
	o := options(t)
	second := chtest.Start(t, chtest.Options{})
	must(t, open(t, o).Prepare(t.Context()))
	other := o
	other.Host, other.Port, other.User, other.Password = second.Host, second.Port, second.User, second.Password
	must(t, open(t, other).Prepare(t.Context()))

	behind := []string{fmt.Sprintf("%s:%d", o.Host, o.Port), fmt.Sprintf("%s:%d", other.Host, other.Port)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	var turn atomic.Int64
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", behind[turn.Add(1)%2])
				if err != nil {
					return
				}
				defer server.Close()
				go io.Copy(server, client) //nolint:errcheck // ends with either side
				io.Copy(client, server)    //nolint:errcheck // ends with either side
			}()
		}
	}()
	o.Port = listener.Addr().(*net.TCPAddr).Port
	wantFindings(t, findings(t, open(t, o)), "fail replicas: several servers answer at this address", "neither states nor locks are shared")
}
