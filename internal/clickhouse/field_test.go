package clickhouse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
	"github.com/chstate/chstate/internal/glob"
	"github.com/chstate/chstate/lock"
)

// dedupWindow is a state table that drops repeated inserts, as replicated ones
// do by default.
func dedupWindow(t *testing.T) *DB {
	t.Helper()
	db := open(t)
	chtest.SQL(t, "CREATE DATABASE "+quoteIdent(db.names.schema))
	chtest.SQL(t, "CREATE TABLE "+db.names.State()+" (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3))"+
		" ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id SETTINGS non_replicated_deduplication_window = 100")
	return db
}

// TestR01R02: deleting and inserting the same again, and going back to an
// earlier value, is not taken for a repetition, not even with the same version.
func TestR01R02(t *testing.T) {
	ctx, db := ctxFor(t), dedupWindow(t)
	a := Row{ID: "a", Completed: []byte(`{"v":"A"}`), UpdatedAt: 10}
	if err := db.Insert(ctx, a); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Clear(ctx, "me"); err != nil {
		t.Fatal(err)
	}
	if err := db.Insert(ctx, a); err != nil {
		t.Fatal(err)
	}
	if row, found, err := db.Get(ctx, "a"); err != nil || !found || string(row.Completed) != `{"v":"A"}` {
		t.Fatalf("R01: %s %t %v", row.Completed, found, err)
	}
	for i, v := range []string{"A", "B", "A"} {
		if err := db.Insert(ctx, Row{ID: "b", Completed: fmt.Appendf(nil, "%s", v), UpdatedAt: lock.Millis(100 + i)}); err != nil {
			t.Fatal(err)
		}
	}
	if row, _, err := db.Get(ctx, "b"); err != nil || string(row.Completed) != "A" {
		t.Fatalf("R02: %s %v", row.Completed, err)
	}
}

// TestR04: a row dated in the future shows its version, so that a writer can
// go above it.
func TestR04(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	future := lock.Millis(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	if err := db.Insert(ctx, Row{ID: "a", Completed: []byte("old"), UpdatedAt: future}); err != nil {
		t.Fatal(err)
	}
	now, newest, err := db.Newest(ctx, "a")
	if err != nil || newest["a"] != future {
		t.Fatal(newest, err)
	}
	if err := db.Insert(ctx, Row{ID: "a", Completed: []byte("new"), UpdatedAt: max(now, newest["a"]+1)}); err != nil {
		t.Fatal(err)
	}
	if row, _, err := db.Get(ctx, "a"); err != nil || string(row.Completed) != "new" {
		t.Fatalf("%s %v", row.Completed, err)
	}
}

// TestR08: a DELETE that says "unfinished" is believed by its effect.
func TestR08(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	db := openWith(t, cfg)
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	w.On(faultproxy.When("DELETE", faultproxy.ExceptionAfter(341)))
	if err := db.Delete(ctx, "a", 2); err != nil {
		t.Fatal(err)
	}
	if _, found, err := db.Get(ctx, "a"); found || err != nil {
		t.Fatal(found, err)
	}
}

// TestR09: a mutation that fails for ever does not hold a delete for ever, and
// is named.
func TestR09(t *testing.T) {
	defer func(d time.Duration) { deleteLimit = d }(deleteLimit)
	deleteLimit = 2 * time.Second
	ctx := ctxFor(t)
	_, cfg := newWire(t)
	db := openWith(t, cfg)
	// Without the small deletes of newer servers: those wait for nothing.
	chtest.SQL(t, "CREATE DATABASE "+quoteIdent(cfg.Schema))
	chtest.SQL(t, "CREATE TABLE "+db.names.State()+" (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3))"+
		" ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id")
	if err := db.Insert(ctx, Row{ID: "a", Completed: []byte("x"), UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	chtest.SQL(t, "ALTER TABLE "+db.names.State()+" UPDATE completed_state = toString(toUInt32(assumeNotNull(completed_state))) WHERE 1 SETTINGS mutations_sync = 0")
	start := time.Now()
	err := db.Delete(ctx, "a", 2)
	wantKind(t, err, Busy, "system.mutations", "KILL MUTATION", "UPDATE completed_state")
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("after %s", took)
	}
	chtest.SQL(t, "KILL MUTATION WHERE database = "+quoteString(cfg.Schema))
	if err := db.Delete(ctx, "a", 2); err != nil {
		t.Fatalf("after the failing mutation is gone: %v", err)
	}
}

// TestR10: a projection either does no harm to deletes, or is named.
func TestR10(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := chtest.Target(t).Do("ALTER TABLE " + db.names.State() + " ADD PROJECTION p (SELECT state_id, count() GROUP BY state_id)"); err != nil {
		// Newer servers refuse one on this engine unless told how to merge it.
		chtest.SQL(t, "ALTER TABLE "+db.names.State()+" MODIFY SETTING deduplicate_merge_projection_mode = 'drop'")
		chtest.SQL(t, "ALTER TABLE "+db.names.State()+" ADD PROJECTION p (SELECT state_id, count() GROUP BY state_id)")
	}
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	err := db.Delete(ctx, "a", 2)
	_, found, getErr := db.Get(ctx, "a")
	if getErr != nil {
		t.Fatal(getErr)
	}
	if err != nil {
		wantKind(t, err, Server, "projection")
		if code := explained(err).Code; code != 344 || !found {
			t.Errorf("code %d, found %t", code, found)
		}
		return
	}
	if found {
		t.Error("deleted, and still there")
	}
}

// TestR11: a profile that has asynchronous inserts without waiting does not
// make a write invisible, nor hide its error.
func TestR11(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	w.On(faultproxy.Profile(map[string]string{"async_insert": "1", "wait_for_async_insert": "0", "async_insert_busy_timeout_ms": "5000"}))
	db := openWith(t, cfg)
	for i := range 5 {
		if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: lock.Millis(100 + i)}); err != nil {
			t.Fatal(err)
		}
		if row, _, err := db.Get(ctx, "a"); err != nil || row.UpdatedAt != lock.Millis(100+i) {
			t.Fatalf("write %d does not show: %d, %v", i, row.UpdatedAt, err)
		}
		if err := db.LockLog().Append(ctx, "a", lockRec(i)); err != nil {
			t.Fatal(err)
		}
		if s, err := db.LockLog().Read(ctx, "a"); err != nil || len(s.Rows) == 0 {
			t.Fatal(s, err)
		}
	}
}

// TestN14: many threads of one store share nothing that a session would lock.
func TestN14(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	errs := make(chan error)
	const threads = 8
	for i := range threads {
		go func() {
			for j := range 20 {
				if err := db.Insert(ctx, Row{ID: fmt.Sprint(i), UpdatedAt: lock.Millis(j)}); err != nil {
					errs <- err
					return
				}
				if _, _, err := db.Get(ctx, fmt.Sprint(i)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range threads {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestPatternsOnTheServer: the same ids match as with glob.Match.
func TestPatternsOnTheServer(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	ids := append([]string{"a", "ab", "abc", "A", "aXb", "a\nb", "-", "]", "[", "^", "!", "é", "éé", "\xffa", "a\xff"}, oddIDs...)
	var rows []Row
	for _, id := range ids {
		rows = append(rows, Row{ID: id, UpdatedAt: 1})
	}
	if err := db.Insert(ctx, rows...); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"", "*", "**", "?", "??", "a*", "*b", "a?b", "a[!X]b", "[]]", "[!]]", "[a-c]*", "[^a]", "[", "[a", "*%*", "a_b", `back\slash`, `\`, `*\*`,
		"*\n*", "tab\t*", "nul\x00*", "[\x00-\x1f]*", "*[é-ü]*", "?é", "*\xff*", "\xff*", "?a", "[b-a]", "[!b-a]", "*🦆", "it's", "* *", strings.Repeat("x", 20_000) + "*", "dev:tap-*-to-*"} {
		var got []string
		for id, err := range db.IDs(ctx, pattern) {
			if err != nil {
				t.Fatalf("%.40q: %v", pattern, err)
			}
			got = append(got, id)
		}
		want := map[string]bool{}
		for _, id := range ids {
			if glob.Match(pattern, id) {
				want[id] = true
			}
		}
		if len(got) != len(want) {
			t.Errorf("%.40q gives %d ids, want %d: %.60q", pattern, len(got), len(want), got)
		}
		for _, id := range got {
			if !want[id] {
				t.Errorf("%.40q gives %.40q", pattern, id)
			}
		}
	}
}

// TestN15: state text travels in the request's body, never in the URL or in
// the statement, however large it is; what the URL carries stays small.
func TestN15(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	db := openWith(t, cfg)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	for i, size := range []int{3 << 20, 14 << 20} {
		w.Take()
		text := []byte(`{"only in the body":"` + strings.Repeat("x", size) + `"}`)
		if err := db.Insert(ctx, Row{ID: "a", Partial: text, Completed: text, UpdatedAt: lock.Millis(i + 1)}); err != nil {
			t.Fatal(err)
		}
		inserts := 0
		for _, r := range w.Take() {
			if n := len(r.Params.Encode()); n > 4096 {
				t.Errorf("a URL has %d bytes of parameters", n)
			}
			if strings.Contains(r.Params.Get("query"), "only in the body") {
				t.Error("the text is in the statement")
			}
			if r.Kind() == "INSERT" {
				inserts++
			}
		}
		if inserts != 1 {
			t.Errorf("%d inserts", inserts)
		}
		row, _, err := db.Get(ctx, "a")
		if err != nil || !bytes.Equal(row.Completed, text) || !bytes.Equal(row.Partial, text) {
			t.Fatalf("%d bytes came back of %d: %v", len(row.Completed), len(text), err)
		}
	}
}

// TestR05: a table that its owner partitioned by month, under a profile that
// does not merge across partitions, shows one row for each id, the newest.
func TestR05(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	db := openWith(t, cfg)
	chtest.SQL(t, "CREATE DATABASE "+quoteIdent(cfg.Schema))
	chtest.SQL(t, "CREATE TABLE "+db.names.State()+" (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3))"+
		" ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id PARTITION BY toYYYYMM(updated_at)")
	w.On(faultproxy.Profile(map[string]string{"do_not_merge_across_partitions_select_final": "1"}))
	for i, month := range []time.Month{3, 1, 2} {
		at := lock.Millis(time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
		if err := db.Insert(ctx, Row{ID: "a", Completed: fmt.Appendf(nil, "%d", month), UpdatedAt: at}); err != nil {
			t.Fatal(i, err)
		}
	}
	if row, found, err := db.Get(ctx, "a"); err != nil || !found || string(row.Completed) != "3" {
		t.Errorf("get: %s %t %v", row.Completed, found, err)
	}
	n := 0
	for _, err := range db.IDs(ctx, "*") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("the id is listed %d times", n)
	}
	if n, err := db.Clear(ctx, "me"); err != nil || n != 1 {
		t.Errorf("cleared %d: %v", n, err)
	}
	if _, found, err := db.Get(ctx, "a"); found || err != nil {
		t.Errorf("an older month shows: %t %v", found, err)
	}
}

// TestR06: on replicated tables a write waits for a quorum and a read for what
// the quorum has, so that no lagging replica answers. (That a server does so
// is ClickHouse's part: one node cannot show it.)
func TestR06(t *testing.T) {
	s := &server{known: map[string]setting{}, state: &table{engine: "ReplicatedReplacingMergeTree"}}
	for _, name := range []string{"insert_quorum", "insert_quorum_parallel", "select_sequential_consistency"} {
		s.known[name] = setting{}
	}
	for _, p := range []purpose{forRead, forStream} {
		if got := s.settings(p, Config{}, &leftOut{}); got["select_sequential_consistency"] != "1" {
			t.Errorf("a read carries %v", got)
		}
	}
	if got := s.settings(forInsert, Config{}, &leftOut{}); got["insert_quorum"] != "auto" || got["insert_quorum_parallel"] != "0" {
		t.Errorf("an insert carries %v", got)
	}
}
