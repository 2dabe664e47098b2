package clickhouse

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate/internal/faultproxy"
	"github.com/chstate/chstate/lock"
)

func TestInitSQL(t *testing.T) {
	got, err := InitSQL(Config{Schema: "meltano", Table: "state", User: "etl", HistoryDays: 30})
	if err != nil {
		t.Fatal(err)
	}
	want := "-- Tables of chstate. Run this as a user who may create and grant.\n" +
		"-- The account `etl`, the settings' user, is granted what it needs; the account has to be there.\n" +
		"CREATE DATABASE IF NOT EXISTS `meltano`;\n" +
		`
CREATE TABLE IF NOT EXISTS ` + "`meltano`.`state`" + ` (
    state_id String,
    partial_state Nullable(String),
    completed_state Nullable(String),
    updated_at DateTime64(3) DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(updated_at)
ORDER BY state_id;

CREATE TABLE IF NOT EXISTS ` + "`meltano`.`state_lock`" + ` (
    state_id String,
    lock_id String,
    seq UInt64 DEFAULT 0,
    waiting UInt8 DEFAULT 0,
    released UInt8 DEFAULT 0,
    locked_at DateTime64(3) DEFAULT now64(3),
    expires_at DateTime64(3) DEFAULT locked_at + toIntervalSecond(300),
    ceiling DateTime64(3) DEFAULT expires_at,
    holder String DEFAULT ''
) ENGINE = ReplacingMergeTree(seq, released)
PRIMARY KEY state_id ORDER BY (state_id, lock_id) TTL toDateTime(greatest(locked_at, expires_at)) + toIntervalSecond(300);

CREATE TABLE IF NOT EXISTS ` + "`meltano`.`state_history`" + ` (
    state_id String,
    partial_state Nullable(String),
    completed_state Nullable(String),
    updated_at DateTime64(3) DEFAULT now64(3),
    archived_at DateTime64(3) DEFAULT now64(3),
    archived_by String,
    reason String
) ENGINE = ReplacingMergeTree(archived_at)
ORDER BY (state_id, updated_at) TTL toDateTime(archived_at) + toIntervalDay(30);

-- Reading, writing and locking states.
` + "GRANT SELECT, INSERT ON `meltano`.`state` TO `etl`;\n" +
		"GRANT SELECT, INSERT ON `meltano`.`state_lock` TO `etl`;\n" +
		"GRANT SELECT, INSERT ON `meltano`.`state_history` TO `etl`;\n" +
		"\n-- Deleting states (`chstate clear` and `move`, `meltano state clear`).\n" +
		"GRANT ALTER DELETE ON `meltano`.`state` TO `etl`;\n" +
		"\n-- Taking back locks while the older plugin, meltano-state-backend-clickhouse, uses these tables, too.\n" +
		"GRANT ALTER DELETE ON `meltano`.`state_lock` TO `etl`;\n" +
		"\n-- Forgetting old versions (`chstate history prune`).\n" +
		"GRANT ALTER DELETE ON `meltano`.`state_history` TO `etl`;\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := InitSQL(Config{Schema: "meltano"}); err == nil {
		t.Error("no table, and no error")
	}
	nobody, err := InitSQL(Config{Schema: "meltano", Table: "state"})
	if err != nil || strings.Contains(nobody, "\nGRANT") || strings.Contains(nobody, "history") {
		t.Errorf("without a user and a history: %s, %v", nobody, err)
	}
	if !strings.Contains(nobody, "\n-- No account is named in the settings") {
		t.Errorf("who is granted is not said: %s", nobody)
	}
	if views := ViewsSQL(Config{Schema: "meltano", Table: "state"}); strings.Contains(views, "\nGRANT") {
		t.Errorf("without a user: %s", views)
	}
}

func TestInitSQLForClusters(t *testing.T) {
	got, err := InitSQL(Config{Schema: "m", Table: "s", User: "etl", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"CREATE DATABASE IF NOT EXISTS `m` ON CLUSTER `prod`;",
		"CREATE TABLE IF NOT EXISTS `m`.`s` ON CLUSTER `prod` (",
		"ENGINE = ReplicatedReplacingMergeTree(updated_at)",
		"ENGINE = ReplicatedReplacingMergeTree(seq, released)",
		"GRANT ON CLUSTER `prod` SELECT, INSERT ON `m`.`s` TO `etl`;",
		"-- GRANT CLUSTER ON *.* TO `etl`;",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}

func TestEngineOfNewTables(t *testing.T) {
	for _, c := range []struct {
		cfg      Config
		database string
		cloud    bool
		want     string
	}{
		{Config{}, "Atomic", false, "ReplacingMergeTree(v)"},
		{Config{Engine: "auto"}, "", false, "ReplacingMergeTree(v)"},
		{Config{}, "Replicated", false, "ReplicatedReplacingMergeTree(v)"},
		{Config{Cluster: "c"}, "Atomic", false, "ReplicatedReplacingMergeTree(v)"},
		{Config{}, "Shared", true, "ReplacingMergeTree(v)"},
		{Config{Engine: "SharedReplacingMergeTree"}, "", true, "SharedReplacingMergeTree(v)"},
		{Config{Engine: "ReplicatedReplacingMergeTree('/t/{shard}', '{replica}')"}, "", false, "ReplicatedReplacingMergeTree('/t/{shard}', '{replica}', v)"},
		{Config{Engine: "ReplacingMergeTree()"}, "", false, "ReplacingMergeTree(v)"},
	} {
		if got := engineWith(c.cfg.engine(c.database, c.cloud), "v"); got != c.want {
			t.Errorf("%+v in a database %q: %s, want %s", c.cfg, c.database, got, c.want)
		}
	}
}

// TestBlockColumnsOnlyWhereKnown: older servers do not take the settings.
func TestBlockColumnsOnlyWhereKnown(t *testing.T) {
	n := Config{Schema: "m", Table: "s"}.names()
	known := map[string]bool{"enable_block_number_column": true, "enable_block_offset_column": true}
	if got := stateLayout.create(n, n.state, "ReplacingMergeTree", known, true); !strings.HasSuffix(got, "SETTINGS enable_block_number_column = 1, enable_block_offset_column = 1") {
		t.Error(got)
	}
	if got := stateLayout.create(n, n.state, "ReplacingMergeTree", nil, true); strings.Contains(got, "SETTINGS") {
		t.Error(got)
	}
}

// TestReplicatedTables: where several replicas answer, their clocks may differ.
func TestReplicatedTables(t *testing.T) {
	s := &server{state: &table{engine: "ReplicatedReplacingMergeTree"}, known: map[string]setting{}}
	db := &DB{}
	db.server.Store(s)
	if db.Skew().Seconds() != 60 {
		t.Errorf("skew %s", db.Skew())
	}
	s.state.engine = "ReplacingMergeTree"
	if db.Skew() != 0 {
		t.Errorf("skew %s", db.Skew())
	}
}

// TestDroppedTablesAreMadeAgain by the call after the one that failed.
func TestDroppedTablesAreMadeAgain(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	sqlOn(t, db, "DROP DATABASE "+quoteIdent(db.names.schema))
	_, _, err := db.Get(ctx, "a")
	wantKind(t, err, Schema, "UNKNOWN_DATABASE", "was it dropped?", "`chstate init`")
	if _, found, err := db.Get(ctx, "a"); found || err != nil {
		t.Fatal(found, err)
	}
	claim := lock.Record{ClaimID: "!1", Seq: 1, Lease: time.Second}
	if err := db.LockLog().Append(ctx, "a", claim); err != nil {
		t.Fatal(err)
	}
	sqlOn(t, db, "DROP TABLE "+db.names.Lock()+" SYNC")
	wantKind(t, db.LockLog().Append(ctx, "a", claim), Schema, "state_lock", "UNKNOWN_TABLE", "was it dropped?")
	if err := db.LockLog().Append(ctx, "a", claim); err != nil {
		t.Error(err)
	}
}

// TestDeletesNeedNoClusterGrant: replicas pass a DELETE on by themselves.
func TestDeletesNeedNoClusterGrant(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	makeTables(t, cfg)
	cfg.Cluster = "prod"
	db := openWith(t, cfg)
	w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
		return strings.Contains(r.Text, "ON CLUSTER") && exception(out, 497, "ACCESS_DENIED", "necessary to have the grant CLUSTER ON *.*")
	})
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(ctx, "a", 2); err != nil {
		t.Fatal(err)
	}
}

func TestQuoting(t *testing.T) {
	for in, want := range map[string]string{"state": "`state`", "a.b c-d": "`a.b c-d`", "a`b": "`a\\x60b`", "x(y)": "`x\\x28y\\x29`", "ü": "`ü`", "a\nb": "`a\\x0Ab`"} {
		if got := quoteIdent(in); got != want {
			t.Errorf("%q becomes %s, want %s", in, got, want)
		}
	}
	if got := chunks(nil); got != nil {
		t.Errorf("no ids make chunks %v", got)
	}
	many := make([]string, 25_000)
	for i := range many {
		many[i] = strings.Repeat("x", i%300)
	}
	if got := slices.Concat(chunks(many)...); !slices.Equal(got, many) {
		t.Error("chunks lose ids")
	}
}
