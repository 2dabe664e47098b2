package clickhouse

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// olderTables makes the older plugin's two tables.
func olderTables(t *testing.T, cfg Config, database, lockedAt string) {
	t.Helper()
	n := cfg.names()
	if _, err := chtest.Target(t).Do("CREATE DATABASE "+quoteIdent(n.schema)+" "+database, "allow_deprecated_database_ordinary=1"); err != nil {
		t.Fatal(err)
	}
	chtest.SQL(t, "CREATE TABLE "+n.State()+" (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3))"+
		" ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id")
	chtest.SQL(t, olderLock(n, n.lock, lockedAt))
}

func olderLock(n names, name, lockedAt string) string {
	now := "now64(3)"
	if lockedAt == "DateTime" {
		now = "now()"
	}
	return "CREATE TABLE " + n.qualified(name) + " (state_id String, lock_id String, locked_at " + lockedAt + " DEFAULT " + now + ")" +
		" ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id TTL toDateTime(locked_at) + INTERVAL 300 SECOND"
}

// checkMigrated: the lock table is the new one, nothing is left beside it.
func checkMigrated(t *testing.T, db *DB) {
	t.Helper()
	got := chtest.SQL(t, "SELECT name, sorting_key FROM system.tables WHERE database = "+quoteString(db.names.schema)+" AND name LIKE '%lock%' ORDER BY name")
	if want := db.names.lock + "\tstate_id, lock_id"; got != want {
		t.Errorf("lock tables: %q, want %q", got, want)
	}
}

func claims(t *testing.T, db *DB, id string) string {
	t.Helper()
	s, err := db.LockLog().Read(ctxFor(t), id)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, r := range s.Rows {
		out[r.ClaimID] = true
		if left := r.ExpiresAt - s.Now; left < 100_000 || left > 302_000 { // a look's clock is a little early
			t.Errorf("claim %s lives for another %d ms", r.ClaimID, left)
		}
	}
	return fmt.Sprint(out)
}

func TestOlderLockTableIsReplaced(t *testing.T) {
	for _, c := range []struct{ name, database, lockedAt string }{
		{"DateTime64", "", "DateTime64(3)"},
		{"DateTime", "", "DateTime"},
		{"Ordinary", "ENGINE = Ordinary", "DateTime64(3)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(chtest.Target(t), chtest.Schema(t))
			olderTables(t, cfg, c.database, c.lockedAt)
			n := cfg.names()
			chtest.SQL(t, "INSERT INTO "+n.Lock()+" (state_id, lock_id) VALUES ('a', 'live-1'), ('b', 'live-2')")
			chtest.SQL(t, "INSERT INTO "+n.Lock()+" (state_id, lock_id, locked_at) VALUES ('c', 'stale', now() - 400)")
			chtest.SQL(t, "INSERT INTO "+n.State()+" (state_id, completed_state) VALUES ('a', '{}')")
			db := openWith(t, cfg)
			if err := db.Prepare(ctxFor(t)); err != nil {
				t.Fatal(err)
			}
			checkMigrated(t, db)
			if got := claims(t, db, "a") + claims(t, db, "b") + claims(t, db, "c"); got != "map[live-1:true]map[live-2:true]map[]" {
				t.Errorf("claims: %s", got)
			}
			if _, found, err := db.Get(ctxFor(t), "a"); !found || err != nil {
				t.Error("the state is gone", err)
			}
			// The older plugin goes on in the new table, its way of releasing included.
			chtest.SQL(t, "INSERT INTO "+n.Lock()+" (state_id, lock_id) VALUES ('d', 'later')")
			if got := claims(t, db, "d"); got != "map[later:true]" {
				t.Errorf("claims: %s", got)
			}
			chtest.SQL(t, "ALTER TABLE "+n.Lock()+" DELETE WHERE lock_id = 'later' SETTINGS mutations_sync = 2")
			if got := claims(t, db, "d"); got != "map[]" {
				t.Errorf("claims: %s", got)
			}
		})
	}
}

// TestManyMigrateAtOnce: several new processes start while the older plugin
// takes locks; none of its acknowledged claims is lost.
func TestManyMigrateAtOnce(t *testing.T) {
	cfg := testConfig(chtest.Target(t), chtest.Schema(t))
	olderTables(t, cfg, "", "DateTime64(3)")
	n := cfg.names()
	target := chtest.Target(t)
	stop, done := make(chan struct{}), make(chan []string)
	go func() {
		var acknowledged []string
		defer func() { done <- acknowledged }()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			id := fmt.Sprintf("id-%04d", i)
			if _, err := target.Do("INSERT INTO " + n.Lock() + " (state_id, lock_id) VALUES ('" + id + "', 'claim')"); err == nil {
				acknowledged = append(acknowledged, id)
			}
		}
	}()
	time.Sleep(100 * time.Millisecond)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			db, err := Open(cfg)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if err := db.Prepare(ctxFor(t)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(stop)
	acknowledged := <-done
	db := openWith(t, cfg)
	if err := db.Prepare(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	checkMigrated(t, db)
	if got := chtest.SQL(t, "SELECT uniqExact(state_id) FROM "+n.Lock()); got != fmt.Sprint(len(acknowledged)) {
		t.Errorf("%s claims of %d are there", got, len(acknowledged))
	}
	if len(acknowledged) < 20 {
		t.Errorf("only %d claims were taken meanwhile", len(acknowledged))
	}
}

// TestMigratorsThatDied: whatever step the last one reached, the next one
// gets to the end, with the claims.
func TestMigratorsThatDied(t *testing.T) {
	was := abandoned
	t.Cleanup(func() { abandoned = was }) // when the parallel parts have ended
	abandoned = time.Second
	for _, c := range []struct {
		name  string
		after []func(names) string
	}{
		{"after CREATE", []func(names) string{
			func(n names) string {
				return lockLayout.create(n, n.replacement(), "ReplacingMergeTree", nil, false)
			},
		}},
		{"after EXCHANGE", []func(names) string{
			func(n names) string {
				return lockLayout.create(n, n.replacement(), "ReplacingMergeTree", nil, false)
			},
			func(n names) string {
				return "EXCHANGE TABLES " + n.Lock() + " AND " + n.qualified(n.replacement())
			},
		}},
		{"between the RENAMEs", []func(names) string{
			func(n names) string {
				return lockLayout.create(n, n.replacement(), "ReplacingMergeTree", nil, false)
			},
			func(n names) string { return "RENAME TABLE " + n.Lock() + " TO " + n.qualified(n.replaced()) },
		}},
		{"after RENAME", []func(names) string{
			func(n names) string {
				return lockLayout.create(n, n.replacement(), "ReplacingMergeTree", nil, false)
			},
			func(n names) string {
				return "RENAME TABLE " + n.Lock() + " TO " + n.qualified(n.replaced()) + ", " + n.qualified(n.replacement()) + " TO " + n.Lock()
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(chtest.Target(t), chtest.Schema(t))
			olderTables(t, cfg, "", "DateTime64(3)")
			n := cfg.names()
			chtest.SQL(t, "INSERT INTO "+n.Lock()+" (state_id, lock_id) VALUES ('a', 'live')")
			for _, step := range c.after {
				chtest.SQL(t, step(n))
			}
			db := openWith(t, cfg)
			if err := db.Prepare(ctxFor(t)); err != nil {
				t.Fatal(err)
			}
			if got := claims(t, db, "a"); got != "map[live:true]" {
				t.Errorf("claims: %s", got)
			}
			time.Sleep(2*abandoned + 100*time.Millisecond) // ages are whole seconds
			// What is still beside it goes with the next start.
			if err := openWith(t, cfg).Prepare(ctxFor(t)); err != nil {
				t.Fatal(err)
			}
			checkMigrated(t, db)
		})
	}
}

// TestASlowMigratorSwapsNothingTwice: one that was taken for dead fails to
// swap, rather than bringing the old table back.
func TestASlowMigratorSwapsNothingTwice(t *testing.T) {
	defer func(d time.Duration) { abandoned = d }(abandoned)
	abandoned = time.Second
	w, cfg := newWire(t)
	olderTables(t, cfg, "", "DateTime64(3)")
	slow, fast := openWith(t, cfg), openWith(t, func() Config {
		c, target := cfg, chtest.Target(t)
		c.Host, c.Port, c.Secure = target.Host, target.Port, target.Secure
		return c
	}())
	arrived, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.On(func(_ http.ResponseWriter, r faultproxy.Request) bool {
		if r.Kind() == "EXCHANGE" {
			once.Do(func() {
				close(arrived)
				<-proceed
			})
		}
		return false
	})
	done := make(chan error)
	go func() { done <- slow.Prepare(context.Background()) }()
	<-arrived
	if err := fast.Prepare(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	checkMigrated(t, fast)
	close(proceed)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	checkMigrated(t, slow)
}

func TestMigrationIsExplicitWhereTablesAreNotMade(t *testing.T) {
	w, cfg := newWire(t)
	cfg.CreateTables = false
	olderTables(t, cfg, "", "DateTime64(3)")
	db := openWith(t, cfg)
	wantKind(t, db.Prepare(ctxFor(t)), Schema, "older plugin's", "create_tables is never", "chstate init")
	if got := w.Kinds(); strings.Contains(got, "CREATE") || strings.Contains(got, "DROP") {
		t.Errorf("sent %s", got)
	}
	if err := db.Migrate(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	checkMigrated(t, db)
	if err := db.Migrate(ctxFor(t)); err != nil { // again: nothing to do
		t.Fatal(err)
	}
}

func TestRefusedMigrationNamesTheGrant(t *testing.T) {
	w, cfg := newWire(t)
	olderTables(t, cfg, "", "DateTime64(3)")
	cfg.HistoryDays = 0
	w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
		return r.Kind() == "CREATE" && exception(out, 497, "ACCESS_DENIED", "etl: Not enough privileges. To execute this query, it's necessary to have the grant CREATE TABLE ON m.state_lock__new")
	})
	wantKind(t, openWith(t, cfg).Prepare(ctxFor(t)), Denied, "older plugin's lock table", "cannot be replaced", "GRANT CREATE TABLE ON m.state_lock__new")
}

// TestAStrangeLockTable is neither the older plugin's nor ours.
func TestAStrangeLockTable(t *testing.T) {
	cfg := testConfig(chtest.Target(t), chtest.Schema(t))
	chtest.SQL(t, "CREATE DATABASE "+quoteIdent(cfg.Schema))
	n := cfg.names()
	chtest.SQL(t, "CREATE TABLE "+n.Lock()+" (id String, owner String) ENGINE = MergeTree ORDER BY id")
	wantKind(t, openWith(t, cfg).Prepare(ctxFor(t)), Schema, cfg.Schema+".state_lock is not what it must be", "column lock_id (String) is missing")
}
