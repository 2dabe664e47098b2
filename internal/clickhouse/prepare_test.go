package clickhouse

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// TestAnyNameIsATableName: whatever ClickHouse takes as a name works.
func TestAnyNameIsATableName(t *testing.T) {
	for _, table := range []string{"a.b", "with space", "`tick`", `"quoted"`, "it's", `back\slash`, "(paren) VALUES (1)", "ünï🦆", "x SETTINGS a=1",
		"FORMAT", "{p0:String}", "a;b", "-- c", "select"} {
		t.Run(table, func(t *testing.T) {
			ctx := ctxFor(t)
			schema := chtest.Schema(t) + " of `" + table[:1] + "` '(x)"
			t.Cleanup(func() { chtest.SQL(t, "DROP DATABASE IF EXISTS "+quoteIdent(schema)) })
			cfg := testConfig(chtest.Target(t), schema)
			cfg.Table = table
			db := openWith(t, cfg)
			if err := db.Insert(ctx, Row{ID: "a", Completed: []byte("{}"), UpdatedAt: 1}); err != nil {
				t.Fatal(err)
			}
			if _, found, err := db.Get(ctx, "a"); !found || err != nil {
				t.Fatal(found, err)
			}
			if err := db.LockLog().Append(ctx, "a", lockRec(1)); err != nil {
				t.Fatal(err)
			}
			if s, err := db.LockLog().Read(ctx, "a"); err != nil || len(s.Rows) != 1 {
				t.Fatal(s, err)
			}
			if err := db.Archive(ctx, "set", "me", "a"); err != nil {
				t.Fatal(err)
			}
			if n, err := db.Clear(ctx, "me"); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			got := chtest.SQL(t, "SELECT groupArray(name) FROM (SELECT name FROM system.tables WHERE database = "+quoteString(schema)+" ORDER BY name)")
			if !strings.Contains(got, "_lock") || !strings.Contains(got, "_history") {
				t.Errorf("tables: %s", got)
			}
		})
	}
}

func TestTheTablesAreAsDesigned(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string][]string{
		db.names.State(): {"`state_id` String", "`partial_state` Nullable(String)", "`completed_state` Nullable(String)",
			"`updated_at` DateTime64(3) DEFAULT now64(3)", "ENGINE = ReplacingMergeTree(updated_at)", "ORDER BY state_id"},
		db.names.Lock(): {"ENGINE = ReplacingMergeTree(seq, released)", "PRIMARY KEY state_id", "ORDER BY (state_id, lock_id)",
			"TTL toDateTime(greatest(locked_at, expires_at)) + toIntervalSecond(300)"},
		db.names.History(): {"`archived_by` String", "`reason` String", "ENGINE = ReplacingMergeTree(archived_at)",
			"ORDER BY (state_id, updated_at)", "TTL toDateTime(archived_at) + toIntervalDay(30)"},
	} {
		got := strings.Join(strings.Fields(strings.ReplaceAll(sqlOn(t, db, "SHOW CREATE TABLE "+table), `\n`, " ")), " ")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q: %s", table, w, got)
			}
		}
	}
	if v := must[string](t)(db.ServerVersion(ctx)); !strings.Contains(v, ".") {
		t.Errorf("version %q", v)
	}
	if db.Skew() != 0 {
		t.Errorf("skew %s on one server", db.Skew())
	}
}

func TestManyProcessesMakeTheTablesAtOnce(t *testing.T) {
	ctx := ctxFor(t)
	cfg := testConfig(chtest.Target(t), chtest.Schema(t))
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			db, err := Open(cfg)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestCreateTablesNeverSendsNoDDL(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	cfg.CreateTables = false
	db := openWith(t, cfg)
	wantKind(t, db.Prepare(ctx), Schema, db.Target(), cfg.Schema+".state does not exist", "chstate init --print-sql")
	if strings.Contains(w.Kinds(), "CREATE") {
		t.Error("DDL was sent")
	}
	// The tables appear: the same store works.
	makeTables(t, cfg)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	// Without the history's table there is no history, and that is said, not an error.
	chtest.SQL(t, "DROP TABLE "+db.names.History())
	other := openWith(t, cfg)
	if err := other.Archive(ctx, "set", "me", "a"); err != nil {
		t.Fatal(err)
	}
	w.Take()
}

// makeTables runs what InitSQL prints, as an administrator would. The local
// engine has no users, so there the grants are only parsed.
func makeTables(t *testing.T, cfg Config) {
	t.Helper()
	text, err := InitSQL(cfg)
	if err != nil {
		t.Fatal(err)
	}
	grants := 0
	for _, st := range strings.Split(text, ";\n") {
		st = strings.TrimSpace(st)
		for strings.HasPrefix(st, "--") {
			_, st, _ = strings.Cut(st, "\n")
			st = strings.TrimSpace(st)
		}
		if st == "" {
			continue
		}
		if strings.HasPrefix(st, "GRANT") {
			grants++
			st = "EXPLAIN AST " + st
		}
		chtest.SQL(t, st)
	}
	if grants != 2*len(cfg.wanted()) { // to read and write, and to delete
		t.Errorf("%d grants in:\n%s", grants, text)
	}
}

// TestN06 is the field case N06: on prepared tables, SELECT and INSERT are enough.
func TestN06(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	makeTables(t, cfg)
	w.On(faultproxy.Grants("INSERT"))
	db := openWith(t, cfg)
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.LockLog().Append(ctx, "a", lockRec(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.LockLog().Read(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := db.Archive(ctx, "set", "me", "a"); err != nil {
		t.Fatal(err)
	}
	for _, err := range db.Rows(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
	}
	err := db.Delete(ctx, "a", 2)
	wantKind(t, err, Denied, "497 ACCESS_DENIED", "GRANT ALTER DELETE ON meltano.state TO `default`", "chstate init --print-sql")
	if code := explained(err).Code; code != 497 {
		t.Errorf("code %d", code)
	}
}

// TestN07 is the field case N07, with its kin: a refused CREATE names the grant.
func TestN07(t *testing.T) {
	for _, c := range []struct{ message, grant string }{
		{"etl: Not enough privileges. To execute this query, it's necessary to have the grant CREATE DATABASE ON meltano.*", "GRANT CREATE DATABASE ON meltano.* TO"},
		{"Not enough privileges. To execute this query it's necessary to have grant CREATE TABLE ON meltano.state", "GRANT CREATE TABLE ON meltano.state TO"},
		{"etl: Not enough privileges. To execute this query, it's necessary to have the grant CLUSTER ON *.*", "GRANT CLUSTER ON *.* TO"}, // N07
	} {
		ctx := ctxFor(t)
		w, cfg := newWire(t)
		w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
			return r.Kind() == "CREATE" && exception(out, 497, "ACCESS_DENIED", c.message)
		})
		wantKind(t, openWith(t, cfg).Prepare(ctx), Denied, "tables are missing", c.grant, "chstate init --print-sql")
	}
}

func TestWrongTablesAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, ddl string
		parts     []string
	}{
		{"columns", "(state_id UInt64, completed_state Nullable(String), updated_at DateTime) ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id",
			[]string{"column partial_state (Nullable(String)) is missing", "column state_id is UInt64 instead of String", "column updated_at is DateTime instead of DateTime64(3)"}},
		{"engine", "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3)) ENGINE = MergeTree ORDER BY state_id",
			[]string{"its engine is MergeTree instead of ReplacingMergeTree"}},
		{"no version", "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3)) ENGINE = ReplacingMergeTree ORDER BY state_id",
			[]string{"keeps no newest row by updated_at"}},
		{"order", "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3)) ENGINE = ReplacingMergeTree(updated_at) ORDER BY (state_id, updated_at)",
			[]string{"ordered by (state_id, updated_at) instead of (state_id)"}},
		{"no order", "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3)) ENGINE = ReplacingMergeTree(updated_at) ORDER BY tuple()",
			[]string{"ordered by () instead of (state_id)"}},
		{"view", "AS SELECT 1 AS state_id", []string{"is missing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := ctxFor(t)
			cfg := testConfig(chtest.Target(t), chtest.Schema(t))
			db := openWith(t, cfg)
			chtest.SQL(t, "CREATE DATABASE "+quoteIdent(cfg.Schema))
			kind := "TABLE"
			if c.name == "view" {
				kind = "VIEW"
			}
			chtest.SQL(t, fmt.Sprintf("CREATE %s %s %s", kind, db.names.State(), c.ddl))
			wantKind(t, db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}), Schema, append(c.parts, cfg.Schema+".state is not what it must be")...)
		})
	}
}

// TestTablesMadeByOthersAreTaken: the older plugin's state table, one in a
// time zone, one that is partitioned, one with a further column.
func TestTablesMadeByOthersAreTaken(t *testing.T) {
	for name, ddl := range map[string]string{
		"older":       "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3)) ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id",
		"zone":        "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3, 'Asia/Tokyo')) ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id",
		"partitioned": "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3)) ENGINE = ReplacingMergeTree(updated_at) PARTITION BY toYYYYMM(updated_at) ORDER BY state_id",
		"further":     "(state_id LowCardinality(String), partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3), note String) ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id",
	} {
		t.Run(name, func(t *testing.T) {
			ctx := ctxFor(t)
			cfg := testConfig(chtest.Target(t), chtest.Schema(t))
			// What an operator's profile may say, R05 among it.
			cfg.ServerSettings = map[string]string{"session_timezone": "America/Lima", "do_not_merge_across_partitions_select_final": "1"}
			db := openWith(t, cfg)
			chtest.SQL(t, "CREATE DATABASE "+quoteIdent(cfg.Schema))
			chtest.SQL(t, "CREATE TABLE "+db.names.State()+" "+ddl)
			// R05: two rows of one id in different partitions.
			for _, r := range []Row{{ID: "a", Completed: []byte("old"), UpdatedAt: 1_600_000_000_001}, {ID: "a", Completed: []byte("new"), UpdatedAt: 1_700_000_000_001}, {ID: "b", UpdatedAt: 1_700_000_000_001}} {
				if err := db.Insert(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
			row, _, err := db.Get(ctx, "a")
			if err != nil || string(row.Completed) != "new" || row.UpdatedAt != 1_700_000_000_001 {
				t.Fatalf("%v, %v", row, err)
			}
			ids, n := 0, 0
			for _, err := range db.IDs(ctx, "") {
				if err != nil {
					t.Fatal(err)
				}
				ids++
			}
			for _, err := range db.Rows(ctx, "") {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if ids != 2 || n != 2 {
				t.Errorf("%d ids, %d rows, want 2", ids, n)
			}
			if n, err := db.Clear(ctx, "me"); n != 2 || err != nil {
				t.Fatal(n, err)
			}
			if got := sqlOn(t, db, "SELECT count() FROM "+db.names.State()); got != "0" {
				t.Errorf("%s rows are left", got)
			}
		})
	}
}

func TestOldServersAreRefused(t *testing.T) {
	for version, ok := range map[string]bool{"23.7.6.111": false, "22.8.1.1": false, "23.8.16.40": true, "24.1.1.1": true, "nonsense": false} {
		w, cfg := newWire(t)
		probe := probeText(version)
		w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
			if r.Kind() != "probe" {
				return false
			}
			out.Header().Set("Content-Type", "application/octet-stream")
			_, _ = out.Write(probe)
			return true
		})
		cfg.CreateTables = false
		err := openWith(t, cfg).Prepare(context.Background())
		if ok {
			wantKind(t, err, Schema, "does not exist") // past the version's check
			continue
		}
		wantKind(t, err, Version, version, "23.8 or newer")
	}
}

// probeText is the answer of a server that has nothing but a version.
func probeText(version string) []byte {
	return nativeRow([]string{"kind", "a", "b", "c", "d", "e"}, []any{"server", version, "", "", "", ""})
}

// nativeRow is an answer of one row, one block in Native format. Its cells are
// text or uint32.
func nativeRow(columns []string, cells []any) []byte {
	var out []byte
	text := func(s string) { out = append(append(out, byte(len(s))), s...) }
	// Block info, as for clients that name a protocol version.
	out = append(out, 1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, byte(len(columns)), 1)
	for i, name := range columns {
		text(name)
		switch cell := cells[i].(type) {
		case string:
			text("String")
			out = append(out, 0) // no custom serialization
			text(cell)
		case uint32:
			text("UInt32")
			out = binary.LittleEndian.AppendUint32(append(out, 0), cell)
		}
	}
	return out
}

// TestTornLook: a look that others' DDL came into the middle of is no look.
func TestTornLook(t *testing.T) {
	db := open(t)
	whole := func() *table {
		return &table{engine: "ReplacingMergeTree", columns: map[string]string{"state_id": "String"}}
	}
	for name, c := range map[string]struct {
		change func(*table)
		torn   bool
	}{
		"whole":                   {func(*table) {}, false},
		"columns without a table": {func(t *table) { t.engine = "" }, true},
		"a table without columns": {func(t *table) { t.columns = nil }, true},
	} {
		history := whole()
		c.change(history)
		if got := db.torn(&server{tables: map[string]*table{db.names.state: whole(), db.names.history: history}}); got != c.torn {
			t.Errorf("%s: torn is %v", name, got)
		}
	}
}
