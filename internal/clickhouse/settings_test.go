package clickhouse

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chstate/chstate/internal/faultproxy"
)

func TestSettingsThatAreSent(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	cfg.ServerSettings = map[string]string{"max_threads": "1"}
	db := openWith(t, cfg)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.Take() {
		if got := r.Settings(); !slices.Equal(got, []string{"max_threads=1"}) {
			t.Errorf("%s carries %v", r.Kind(), got)
		}
	}
	known := func(names ...string) (out []string) {
		for _, n := range append(names, "max_threads=1") {
			bare, _, _ := strings.Cut(n, "=")
			if _, ok := db.server.Load().known[bare]; ok || bare == "max_threads" {
				out = append(out, n)
			}
		}
		slices.Sort(out)
		return out
	}
	dedup := []string{"deduplicate_insert=disable", "deduplicate_insert_select=disable"}
	if _, ok := db.server.Load().known["deduplicate_insert"]; !ok {
		dedup = []string{"insert_deduplicate=0", "insert_deduplication_token"}
	}
	write := known(append(dedup, "async_insert=0", "do_not_merge_across_partitions_select_final=0")...)
	read := known("do_not_merge_across_partitions_select_final=0")
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	if got := w.Take()[0].Settings(); !slices.Equal(got, write) {
		t.Errorf("an insert carries %v, want %v", got, write)
	}
	if err := db.LockLog().Append(ctx, "a", lockRec(1)); err != nil {
		t.Fatal(err)
	}
	if got := w.Take()[0].Settings(); !slices.Equal(got, write) {
		t.Errorf("an append carries %v, want %v", got, write)
	}
	if _, _, err := db.Get(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if got := w.Take()[0].Settings(); !slices.Equal(got, read) {
		t.Errorf("a read carries %v, want %v", got, read)
	}
	if err := db.Delete(ctx, "a", 5); err != nil {
		t.Fatal(err)
	}
	del := w.Take()[1]
	want := known("do_not_merge_across_partitions_select_final=0", "lightweight_delete_mode=alter_update", "lightweight_deletes_sync=2", "max_query_size=786432", "mutations_sync=2")
	if got := del.Settings(); !slices.Equal(got, want) {
		t.Errorf("a delete carries %v, want %v", got, want)
	}

	cfg.AsyncInsert = true
	db = openWith(t, cfg)
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 2}); err != nil {
		t.Fatal(err)
	}
	requests := w.Take()
	got := requests[len(requests)-1].Settings()
	if !slices.Contains(got, "async_insert=1") || !slices.Contains(got, "wait_for_async_insert=1") {
		t.Errorf("async_insert carries %v", got)
	}
	if row, _, err := db.Get(ctx, "a"); err != nil || row.UpdatedAt != 2 {
		t.Errorf("an async insert that was waited for does not show: %v, %v", row.UpdatedAt, err)
	}
}

// TestSettingsOfOtherServers: what a server does not have is not sent; what a
// replicated one needs is.
func TestSettingsOfOtherServers(t *testing.T) {
	has := func(names ...string) map[string]setting {
		known := map[string]setting{}
		for _, n := range names {
			known[n] = setting{value: "default"}
		}
		return known
	}
	old := &server{known: has("async_insert", "insert_deduplicate", "insert_deduplication_token", "do_not_merge_across_partitions_select_final",
		"insert_quorum", "insert_quorum_parallel", "select_sequential_consistency", "mutations_sync"), state: &table{engine: "ReplacingMergeTree"}}
	plain := old.settings(forInsert, Config{}, &leftOut{})
	if plain["insert_deduplicate"] != "0" || plain["insert_deduplication_token"] == nil || plain["insert_quorum"] != nil {
		t.Errorf("an older server's insert carries %v", plain)
	}
	if again := old.settings(forInsert, Config{}, &leftOut{}); again["insert_deduplication_token"] == plain["insert_deduplication_token"] {
		t.Error("two inserts share a token")
	}
	if del := old.settings(forDelete, Config{}, &leftOut{}); fmt.Sprint(del) != "map[do_not_merge_across_partitions_select_final:0 mutations_sync:2]" {
		t.Errorf("an older server's delete carries %v", del)
	}

	old.state = &table{engine: "ReplicatedReplacingMergeTree"}
	replicated := old.settings(forInsert, Config{}, &leftOut{})
	if replicated["insert_quorum"] != "auto" || replicated["insert_quorum_parallel"] != "0" || replicated["select_sequential_consistency"] != "1" {
		t.Errorf("a replicated insert carries %v", replicated)
	}
	if read := old.settings(forRead, Config{}, &leftOut{}); read["select_sequential_consistency"] != "1" || read["insert_quorum"] != nil {
		t.Errorf("a replicated read carries %v", read)
	}

	threads := &server{known: has("max_threads")}
	for p, want := range map[purpose]any{forLook: "1", forClaim: "1", forRead: nil, forInsert: nil} {
		if got := threads.settings(p, Config{}, &leftOut{})["max_threads"]; got != want {
			t.Errorf("purpose %d carries max_threads=%v, want %v", p, got, want)
		}
	}

	cloud := &server{known: has("cloud_mode", "insert_quorum", "select_sequential_consistency", "deduplicate_insert"), state: &table{engine: "SharedReplacingMergeTree"}}
	cloud.known["cloud_mode"] = setting{value: "1"}
	insert := cloud.settings(forInsert, Config{}, &leftOut{})
	if insert["select_sequential_consistency"] != "1" || insert["insert_quorum"] != nil || insert["deduplicate_insert"] != "disable" {
		t.Errorf("an insert on ClickHouse Cloud carries %v", insert)
	}
}

// TestN05 is the field case N05: users in readonly mode read, and are told why
// they do not write.
func TestN05(t *testing.T) {
	for _, mode := range []int{1, 2} {
		t.Run(fmt.Sprint("readonly=", mode), func(t *testing.T) {
			ctx := ctxFor(t)
			w, cfg := newWire(t)
			admin := openWith(t, cfg)
			if err := admin.Insert(ctx, Row{ID: "a", UpdatedAt: 9}); err != nil {
				t.Fatal(err)
			}
			w.On(faultproxy.ReadOnly(mode))
			db := openWith(t, cfg)
			if row, found, err := db.Get(ctx, "a"); err != nil || !found || row.UpdatedAt != 9 {
				t.Fatal(row, found, err)
			}
			for _, err := range db.Rows(ctx, "*") {
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, err := range db.RowsOf(ctx, []string{"a", "b"}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.LockLog().Read(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			wantKind(t, db.Insert(ctx, Row{ID: "a", UpdatedAt: 10}), ReadOnly, "164 READONLY", "readonly mode")
			wantKind(t, db.Delete(ctx, "a", 10), ReadOnly, "164 READONLY")
			wantKind(t, db.LockLog().Append(ctx, "a", lockRec(1)), ReadOnly, "164 READONLY")
		})
	}
}

// TestRefusedSettingsAreLeftOutOfReads, once and for all; a write says what is
// missing instead.
func TestRefusedSettingsAreLeftOutOfReads(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	db := openWith(t, cfg)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	const name = "do_not_merge_across_partitions_select_final"
	refusals := 0
	w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
		if r.Params.Has(name) {
			refusals++
			return exception(out, 452, "SETTING_CONSTRAINT_VIOLATION", "Setting "+name+" should not be changed")
		}
		return false
	})
	for range 3 {
		if _, _, err := db.Get(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if refusals != 1 {
		t.Errorf("sent %d times", refusals)
	}
	w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
		return r.Params.Has("async_insert") && exception(out, 452, "SETTING_CONSTRAINT_VIOLATION", "Setting async_insert should not be changed")
	})
	wantKind(t, db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}), ReadOnly, "452", "async_insert", "constraint")
}
