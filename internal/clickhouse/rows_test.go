package clickhouse

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate/lock"
)

// oddIDs are ids that some part on the way might take for more than text.
var oddIDs = []string{
	"dev:tap-github-to-target-postgres", "a b", "tab\there", "line\nbreak", "cr\rhere", `back\slash`, `\N`, `\`, "nul\x00byte",
	"it's", `"quoted"`, "`tick`", "50% off", "%41", "a_b", "{p0:String}", "{x}", "ünï→🦆", " lead", "trail ", "?*[a]", "--", "/*", ";",
	"\xff\xfe not utf-8", strings.Repeat("x", 20_000), strings.Repeat("é\n'", 5_000), "NULL", "$$", "a?b:c",
}

func TestAnyTextIsAStateID(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	var rows []Row
	for i, id := range oddIDs {
		rows = append(rows, Row{ID: id, Completed: fmt.Appendf(nil, `{"n":%d}`, i), UpdatedAt: lock.Millis(1_700_000_000_000 + i)})
	}
	if err := db.Insert(ctx, rows...); err != nil {
		t.Fatal(err)
	}
	for i, id := range oddIDs {
		row, found, err := db.Get(ctx, id)
		if err != nil || !found {
			t.Fatalf("get %.40q: found %t, %v", id, found, err)
		}
		if diff := cmp.Diff(rows[i], row); diff != "" {
			t.Errorf("get %.40q (-want +got):\n%s", id, diff)
		}
	}
	var got []string
	for id, err := range db.IDs(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	want := slices.Sorted(slices.Values(oddIDs))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	_, newest, err := db.Newest(ctx, oddIDs...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if newest[r.ID] != r.UpdatedAt {
			t.Errorf("newest of %.40q = %d, want %d", r.ID, newest[r.ID], r.UpdatedAt)
		}
		if _, one, err := db.Newest(ctx, r.ID); err != nil || one[r.ID] != r.UpdatedAt {
			t.Errorf("newest of %.40q alone = %d, %v, want %d", r.ID, one[r.ID], err, r.UpdatedAt)
		}
	}
	if err := db.Archive(ctx, "set", "me", oddIDs...); err != nil {
		t.Fatal(err)
	}
	for _, id := range oddIDs {
		if err := db.Delete(ctx, id, 1_800_000_000_000); err != nil {
			t.Fatalf("delete %.40q: %v", id, err)
		}
		if _, found, err := db.Get(ctx, id); found || err != nil {
			t.Errorf("after delete of %.40q: found %t, %v", id, found, err)
		}
	}
}

func TestLongAndEmptyIDsAreRefused(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	for _, id := range []string{"", strings.Repeat("x", MaxIDBytes+1)} {
		_, _, err := db.Get(ctx, id)
		wantKind(t, err, Invalid, "state id")
		wantKind(t, db.Insert(ctx, Row{ID: id}), Invalid, "state id")
		wantKind(t, db.Delete(ctx, id, 1), Invalid, "state id")
		wantKind(t, db.LockLog().Append(ctx, id, lock.Record{}), Invalid, "state id")
	}
	id := strings.Repeat("y", MaxIDBytes)
	if err := db.Insert(ctx, Row{ID: id, UpdatedAt: 5}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := db.Get(ctx, id); !found || err != nil {
		t.Fatalf("longest id: found %t, %v", found, err)
	}
	if err := db.LockLog().Append(ctx, id, lock.Record{ClaimID: "!1", Ceiling: lock.ServerFills}); err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(ctx, id, 6); err != nil {
		t.Fatal(err)
	}
}

func TestHalvesComeBackByteForByte(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	big := []byte(`{"x":"` + strings.Repeat("0123456789abcdé", 1_000_000) + `"}`) // 16 MB
	for i, r := range []Row{
		{ID: "nulls"},
		{ID: "empty", Partial: []byte{}, Completed: []byte("")},
		{ID: "spaces", Partial: []byte("{ \"b\" :1.0,\n\t\"a\": NaN }"), Completed: []byte("{}")},
		{ID: "bytes", Partial: []byte("\x00\xff\\N\t\r\n"), Completed: []byte(`null`)},
		{ID: "big", Partial: big, Completed: big[:3_000_000]},
	} {
		r.UpdatedAt = lock.Millis(1000 + i)
		if err := db.Insert(ctx, r); err != nil {
			t.Fatal(err)
		}
		got, found, err := db.Get(ctx, r.ID)
		if err != nil || !found {
			t.Fatalf("%s: found %t, %v", r.ID, found, err)
		}
		if !bytes.Equal(got.Partial, r.Partial) || !bytes.Equal(got.Completed, r.Completed) ||
			(got.Partial == nil) != (r.Partial == nil) || (got.Completed == nil) != (r.Completed == nil) {
			t.Errorf("%s came back changed: %.80q, %.80q", r.ID, got.Partial, got.Completed)
		}
		if got.UpdatedAt != r.UpdatedAt {
			t.Errorf("%s: version %d, want %d", r.ID, got.UpdatedAt, r.UpdatedAt)
		}
	}
}

func TestTheGreatestVersionShows(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	for _, v := range []lock.Millis{5, 9, 7} {
		if err := db.Insert(ctx, Row{ID: "a", Completed: fmt.Appendf(nil, `{"v":%d}`, v), UpdatedAt: v}); err != nil {
			t.Fatal(err)
		}
	}
	row, _, err := db.Get(ctx, "a")
	if err != nil || row.UpdatedAt != 9 || string(row.Completed) != `{"v":9}` {
		t.Fatalf("got %v %s, %v", row.UpdatedAt, row.Completed, err)
	}
	now, newest, err := db.Newest(ctx, "a", "missing")
	if err != nil || now < 1_700_000_000_000 || newest["a"] != 9 || len(newest) != 1 {
		t.Fatalf("newest: %d %v, %v", now, newest, err)
	}
	if now, newest, err = db.Newest(ctx); err != nil || now < 1_700_000_000_000 || len(newest) != 0 {
		t.Fatalf("newest of none: %d %v, %v", now, newest, err)
	}
	// A delete bounded by version leaves what is newer.
	if err := db.Delete(ctx, "a", 9); err != nil {
		t.Fatal(err)
	}
	if row, found, err := db.Get(ctx, "a"); err != nil || !found || row.UpdatedAt != 9 {
		t.Fatalf("after a delete below 9: %v %t, %v", row.UpdatedAt, found, err)
	}
}

func TestStreamingManyRows(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	const n = 3_000
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{ID: fmt.Sprintf("id-%05d", i), Partial: []byte(`{}`), Completed: bytes.Repeat([]byte("x"), 2_000), UpdatedAt: 10}
	}
	if err := db.Insert(ctx, rows...); err != nil {
		t.Fatal(err)
	}
	i := 0
	for r, err := range db.Rows(ctx, "id-*") {
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(rows[i], r) { // cmp would take seconds for this many
			t.Fatalf("row %d is %.100v, want %.100v", i, r, rows[i])
		}
		i++
	}
	if i != n {
		t.Fatalf("%d rows, want %d", i, n)
	}
	// Whoever stops early leaves nothing behind, and the next call works.
	for range 3 {
		for _, err := range db.Rows(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	ids := make([]string, 0, n)
	for id, err := range db.IDs(ctx, "id-0[01]*9") {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if len(ids) != 200 {
		t.Errorf("%d ids match, want 200", len(ids))
	}
	seen := map[string]bool{}
	for r, err := range db.RowsOf(ctx, append(ids, "no such id")) {
		if err != nil {
			t.Fatal(err)
		}
		seen[r.ID] = true
	}
	if len(seen) != len(ids) {
		t.Errorf("%d rows of %d ids", len(seen), len(ids))
	}
	if open := db.conn.Stats().Open; open > 2 {
		t.Errorf("%d connections are still in use", open)
	}
}

func TestClearCountsAndArchives(t *testing.T) {
	for name, c := range map[string]struct {
		fixed   bool // max_query_size is
		deletes int
	}{
		"long statements":  {false, 2},
		"short statements": {true, 7},
	} {
		t.Run(name, func(t *testing.T) {
			w, cfg := newWire(t)
			db := openWith(t, cfg)
			if err := db.Prepare(ctxFor(t)); err != nil {
				t.Fatal(err)
			}
			known := db.server.Load().known
			known["max_query_size"] = setting{value: known["max_query_size"].value, fixed: c.fixed}
			testClear(t, db)
			if n := strings.Count(w.Kinds(), "DELETE"); n != c.deletes {
				t.Errorf("%d DELETEs, want %d", n, c.deletes)
			}
		})
	}
}

func testClear(t *testing.T, db *DB) {
	ctx := ctxFor(t)
	now, _, err := db.Newest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	for i := range 20_000 {
		at := now
		if i%1000 == 0 {
			at = now + 86_400_000*365 // dated a year ahead
		}
		rows = append(rows, Row{ID: fmt.Sprintf("a state id of some length, number %d", i), Completed: []byte(`{}`), UpdatedAt: at})
	}
	for range 2 { // set again: still as many ids
		for i := range rows {
			rows[i].UpdatedAt++
		}
		if err := db.Insert(ctx, rows...); err != nil {
			t.Fatal(err)
		}
	}
	n, err := db.Clear(ctx, "tester")
	if err != nil || n != len(rows) {
		t.Fatalf("cleared %d, %v; want %d", n, err, len(rows))
	}
	for id, err := range db.IDs(ctx, "") {
		t.Fatalf("still there: %q, %v", id, err)
	}
	if n, err := db.Clear(ctx, "tester"); n != 0 || err != nil {
		t.Fatalf("cleared %d again, %v", n, err)
	}
	got := sqlOn(t, db, "SELECT count(), uniqExact(state_id), any(archived_by), any(reason) FROM "+db.names.History()+" FINAL")
	if got != "20000\t20000\ttester\tclear_all" {
		t.Errorf("history has %q", got)
	}
}

// TestClearLeavesWhatIsWrittenMeanwhile writes new and existing ids while they
// are cleared: every write that was acknowledged shows, or was counted and is
// in the history.
func TestClearLeavesWhatIsWrittenMeanwhile(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	type written struct {
		id string
		at lock.Millis
	}
	stop, done := make(chan struct{}), make(chan []written)
	go func() {
		var acknowledged []written
		defer func() { done <- acknowledged }()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			id := fmt.Sprintf("id-%d", i%40)
			now, newest, err := db.Newest(ctx, id)
			if err != nil {
				t.Error(err)
				return
			}
			at := max(now, newest[id]+1)
			if err := db.Insert(ctx, Row{ID: id, Completed: []byte(`{}`), UpdatedAt: at}); err != nil {
				t.Error(err)
				return
			}
			acknowledged = append(acknowledged, written{id, at})
		}
	}()
	for range 5 {
		if _, err := db.Clear(ctx, "t"); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	all := <-done
	last := map[string]lock.Millis{}
	for _, w := range all {
		last[w.id] = w.at
	}
	t.Logf("%d writes", len(all))
	for id, at := range last {
		_, found, err := db.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		archived := sqlOn(t, db, fmt.Sprintf("SELECT count() FROM %s WHERE state_id = '%s' AND updated_at = fromUnixTimestamp64Milli(toInt64(%d))", db.names.History(), id, at))
		if !found && archived == "0" {
			t.Errorf("the last write of %s (%d) is lost", id, at)
		}
	}
}

func TestNoHistory(t *testing.T) {
	ctx, db := ctxFor(t), open(t, func(c *Config) { c.HistoryDays = 0 })
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Archive(ctx, "set", "me", "a"); err != nil {
		t.Fatal(err)
	}
	if n, err := db.Clear(ctx, "me"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := sqlOn(t, db, "SELECT groupArray(name) FROM (SELECT name FROM system.tables WHERE database = '"+db.names.schema+"' ORDER BY name)"); got != "['state','state_lock']" {
		t.Errorf("tables: %s", got)
	}
}

func TestCancelledContext(t *testing.T) {
	db := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := db.Get(ctx, "a")
	if err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Fatal(err)
	}
}
