package cli

import (
	"strings"
	"testing"
	"time"
)

// Cases from the field: what ReplacingMergeTree and its settings do to a state,
// through the tool. docs/cases.md says what each one is.

const (
	stateA = `{"singer_state":{"bookmarks":{"s":{"v":"a"}}}}`
	stateB = `{"singer_state":{"bookmarks":{"s":{"v":"b"}}}}`
)

// sends adds ClickHouse settings to the URI, as a profile would have them.
func (t tool) sends(settings ...string) {
	t.Helper()
	for _, s := range settings {
		sep := "?"
		if strings.Contains(t.env[0], "?") {
			sep = "&"
		}
		t.env[0] += sep + "ch_" + s
	}
	name, _, _ := strings.Cut(settings[0], "=")
	if !strings.Contains(t.run(exitDone, "config"), name) {
		t.Fatalf("the setting %s is not in use", name)
	}
}

// TestR01R02BackToAnEarlierValue: a table that takes an equal insert for a
// repetition takes ours for what they are.
func TestR01R02BackToAnEarlierValue(t *testing.T) {
	tool := newTool(t)
	tool.run(exitDone, "init")
	tool.sql("ALTER TABLE $.state MODIFY SETTING non_replicated_deduplication_window = 100")
	is := func(want string) {
		t.Helper()
		if got := tool.run(exitDone, "get", "a"); got != want+"\n" {
			t.Errorf("the state is %s, want %s", got, want)
		}
	}
	tool.run(exitDone, "set", "a", "--force", stateA)
	tool.run(exitDone, "clear", "a", "--force")
	tool.run(exitDone, "set", "a", "--force", stateA)
	is(stateA)
	var first []struct {
		Version string `json:"version"`
	}
	unmarshal(t, tool.run(exitDone, "history", "a", "--format", "json"), &first)
	tool.run(exitDone, "set", "a", "--force", stateB)
	is(stateB)
	tool.run(exitDone, "rollback", "a", "--force", "--to", first[0].Version)
	is(stateA)
	tool.run(exitDone, "set", "a", "--force", stateB)
	tool.run(exitDone, "set", "a", "--force", stateA)
	is(stateA)
}

// TestR05PartitionedByMonth: two rows of one id in two partitions, under a
// profile that would let FINAL show both.
func TestR05PartitionedByMonth(t *testing.T) {
	tool := newTool(t)
	tool.sql("CREATE DATABASE $")
	tool.sql("CREATE TABLE $.state (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3))" +
		" ENGINE = ReplacingMergeTree(updated_at) PARTITION BY toYYYYMM(updated_at) ORDER BY state_id")
	tool.sql("INSERT INTO $.state VALUES ('a', NULL, '" + stateA + "', '2026-01-05 00:00:00')")
	tool.sql("INSERT INTO $.state VALUES ('a', NULL, '" + stateB + "', '2026-02-05 00:00:00')")
	tool.sends("do_not_merge_across_partitions_select_final=1")
	if got := tool.run(exitDone, "get", "a"); got != stateB+"\n" {
		t.Errorf("the state is %s", got)
	}
	if got := tool.run(exitDone, "list"); got != "a\n" {
		t.Errorf("listed: %s", got)
	}
	tool.run(exitDone, "set", "a", "--force", stateA)
	if got := tool.run(exitDone, "get", "a"); got != stateA+"\n" {
		t.Errorf("the state is %s", got)
	}
}

// TestR11AsyncInsertProfile: a profile that does not wait for its inserts.
func TestR11AsyncInsertProfile(t *testing.T) {
	tool := newTool(t)
	tool.sends("async_insert=1", "wait_for_async_insert=0", "async_insert_busy_timeout_min_ms=5000", "async_insert_busy_timeout_max_ms=5000")
	for _, want := range []string{stateA, stateB, stateA} {
		tool.run(exitDone, "set", "a", "--force", want)
		if got := tool.run(exitDone, "get", "a"); got != want+"\n" {
			t.Errorf("the state is %s, want %s", got, want)
		}
	}
	tool.unlocked()
}

// TestR09StuckMutation: a mutation that fails for ever holds up a clear for half a
// minute and no longer, and is named with what ends it.
func TestR09StuckMutation(t *testing.T) {
	t.Parallel()
	tool := newTool(t)
	// Without the small deletes of newer servers, which wait for no mutation.
	tool.sql("CREATE DATABASE $")
	tool.sql("CREATE TABLE $.state (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3))" +
		" ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id")
	tool.run(exitDone, "set", "a", "--force", stateA)
	tool.sql("ALTER TABLE $.state UPDATE completed_state = toString(toUInt32(assumeNotNull(completed_state))) WHERE 1 SETTINGS mutations_sync = 0")
	tool.refuses(exitFailed, []string{"system.mutations", "KILL MUTATION", "UPDATE completed_state"}, "clear", "a", "--force")
	tool.unlocked()
	// Writing and reading are not in its way.
	tool.run(exitDone, "set", "a", "--force", stateB)
	if got := tool.run(exitDone, "get", "a"); got != stateB+"\n" {
		t.Errorf("the state is %s", got)
	}
	tool.sql("KILL MUTATION WHERE database = '$'")
	tool.run(exitDone, "clear", "a", "--force")
	tool.run(exitNoState, "get", "a")
}

// TestR12RestoredBackup: a backup brings back a state, and the lock of a
// process that ended long ago, which is in nobody's way.
func TestR12RestoredBackup(t *testing.T) {
	t.Parallel()
	tool := newTool(t).with("lock_timeout_seconds=2", "lock_wait_seconds=0")
	tool.run(exitDone, "set", "a", "--force", stateA)
	tool.sql("INSERT INTO $.state_lock (state_id, lock_id, seq, locked_at, expires_at) VALUES ('a', '!01900000-0000-7000-8000-000000000000', 1, now64(3), now64(3) + 2)")
	for _, table := range []string{"state", "state_lock"} {
		tool.sql("CREATE TABLE $.backup_" + table + " ENGINE = MergeTree ORDER BY state_id AS SELECT * FROM $." + table)
	}
	tool.sql("TRUNCATE TABLE $.state_lock")
	tool.run(exitDone, "clear", "a", "--force")
	time.Sleep(2100 * time.Millisecond) // the backup is older than a lease
	for _, table := range []string{"state", "state_lock"} {
		tool.sql("INSERT INTO $." + table + " SELECT * FROM $.backup_" + table)
	}
	if got := tool.run(exitDone, "get", "a"); got != stateA+"\n" {
		t.Errorf("the state is %s", got)
	}
	tool.run(exitDone, "clear", "a", "--force")
	tool.run(exitNoState, "get", "a")
	tool.run(exitDone, "set", "a", "--force", stateB)
	if got := tool.run(exitDone, "lock", "list"); got != "" {
		t.Errorf("held: %s", got)
	}
}
