package chstate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func wantState(t testing.TB, s *chstate.Store, id, partial, completed string) chstate.State {
	t.Helper()
	st, err := s.Get(t.Context(), id)
	must(t, err)
	if string(st.Partial) != partial || string(st.Completed) != completed {
		t.Fatalf("state %q is partial %s, completed %s; want %s, %s", id, st.Partial, st.Completed, partial, completed)
	}
	return st
}

func ids(t testing.TB, s *chstate.Store, pattern string) []string {
	t.Helper()
	got := []string{}
	for id, err := range s.IDs(t.Context(), pattern) {
		must(t, err)
		got = append(got, id)
	}
	return got
}

// The set/get round trip by which the original's guide verifies an installation.
func TestSetGet(t *testing.T) {
	s := newStore(t)
	before := time.Now().Add(-time.Hour)
	must(t, s.Set(t.Context(), chstate.State{ID: "dev:a-to-b", Completed: raw(`{"singer_state": {"bookmarks": {"s": {"v": 1}}}}`)}))
	st := wantState(t, s, "dev:a-to-b", `{}`, `{"singer_state": {"bookmarks": {"s": {"v": 1}}}}`)
	if st.UpdatedAt.Before(before) || !st.IsComplete() {
		t.Errorf("UpdatedAt %v, IsComplete %v", st.UpdatedAt, st.IsComplete())
	}
	must(t, s.Set(t.Context(), chstate.State{ID: "dev:a-to-b", Partial: raw(`{"x":1}`), Completed: raw(`{}`)}))
	if st := wantState(t, s, "dev:a-to-b", `{"x":1}`, `{}`); st.IsComplete() {
		t.Error("a state with an empty completed half is complete")
	}
}

func TestGetMissing(t *testing.T) {
	_, err := newStore(t).Get(t.Context(), "no such")
	if !errors.Is(err, chstate.ErrNoState) || !strings.Contains(err.Error(), `"no such"`) {
		t.Fatalf("got %v", err)
	}
}

// Meltano's rule, in the order of a run: partial states gather, a complete one replaces.
func TestUpdateRule(t *testing.T) {
	s := newStore(t)
	up := func(partial, completed string) {
		t.Helper()
		must(t, s.Update(t.Context(), chstate.State{ID: "p", Partial: raw(partial), Completed: raw(completed)}))
	}
	up(`{"singer_state":{"bookmarks":{"a":{"v":1}}}}`, ``)
	wantState(t, s, "p", `{"singer_state":{"bookmarks":{"a":{"v":1}}}}`, `{}`)
	up(`{"singer_state":{"bookmarks":{"b":{"v":2}}}}`, `{}`)
	wantState(t, s, "p", `{"singer_state":{"bookmarks":{"a":{"v":1},"b":{"v":2}}}}`, `{}`)
	up(`{}`, `{"singer_state":{"bookmarks":{"a":{"v":3}}}}`)
	wantState(t, s, "p", `{}`, `{"singer_state":{"bookmarks":{"a":{"v":3}}}}`)
	up(`{"singer_state":{"bookmarks":{"b":{"v":9007199254740993}}}}`, ``)
	st := wantState(t, s, "p", `{"singer_state":{"bookmarks":{"b":{"v":9007199254740993}}}}`, `{"singer_state":{"bookmarks":{"a":{"v":3}}}}`)
	merged, err := st.Merged()
	must(t, err)
	if got, want := string(merged), `{"singer_state":{"bookmarks":{"a":{"v":3},"b":{"v":9007199254740993}}}}`; got != want {
		t.Errorf("merged %s, want %s", got, want)
	}
}

// S09: an empty singer state is a complete state to Meltano; {} is none.
func TestS09EmptyStates(t *testing.T) {
	s := newStore(t)
	a := `{"singer_state":{"bookmarks":{"a":1}}}`
	must(t, s.Update(t.Context(), chstate.State{ID: "p", Completed: raw(a)}))
	must(t, s.Update(t.Context(), chstate.State{ID: "p", Completed: raw(`{}`)}))
	wantState(t, s, "p", `{}`, a)
	must(t, s.Update(t.Context(), chstate.State{ID: "p", Completed: raw(`{"singer_state":{}}`)}))
	wantState(t, s, "p", `{}`, `{"singer_state":{}}`)
}

// State text comes back byte for byte.
func TestTextSurvives(t *testing.T) {
	s := newStore(t)
	files, err := filepath.Glob("testdata/cases/*.json")
	must(t, err)
	texts := []string{`{"a":1e400,"b":1.0,"z":0,"a2":-0.0}`, "{ \"spaced\" :\n\t[ 1 ,2 ] }", `{"nan": NaN, "inf": -Infinity}`, `{"a":{"x":1},"a":{"y":2}}`}
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		if b[0] == '{' && utf8.Valid(b) {
			texts = append(texts, string(b))
		}
	}
	for i, text := range texts {
		id := fmt.Sprint("text ", i)
		must(t, s.Set(t.Context(), chstate.State{ID: id, Completed: raw(text)}))
		wantState(t, s, id, `{}`, text)
	}
}

// S01, N15: large states travel in the request body.
func TestS01N15LargeState(t *testing.T) {
	s := newStore(t)
	var b strings.Builder
	b.WriteString(`{"singer_state":{"bookmarks":{"s":{"partitions":[`)
	for i := range 100_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"context":{"account_id":"acc-%08d"},"replication_key":"updated_at","replication_key_value":"2026-01-01T00:00:00.%06dZ"}`, i, i)
	}
	b.WriteString(`]}}}}`)
	must(t, s.Update(t.Context(), chstate.State{ID: "big", Completed: raw(b.String())}))
	wantState(t, s, "big", `{}`, b.String())
	must(t, s.Update(t.Context(), chstate.State{ID: "big", Partial: raw(`{"x":1}`)}))
	wantState(t, s, "big", `{"x":1}`, b.String())
}

// I01, I02, I03, I05: ids are opaque.
func TestI01I02I05StateIDs(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	b, err := os.ReadFile("testdata/cases/state_ids.json")
	must(t, err)
	var all []string
	must(t, json.Unmarshal(b, &all))
	all = append(all, "tab\tnewline\nnul\x00back\\slash", "`backtick`", `'; DROP TABLE x; --`, "\xff\xfe not utf-8")
	want := map[string]bool{}
	for i, id := range all {
		st := chstate.State{ID: id, Completed: raw(fmt.Sprintf(`{"n":%d}`, i))}
		err := s.Update(t.Context(), st)
		if id == "" {
			if !errors.Is(err, chstate.ErrInvalid) {
				t.Errorf("the empty id was taken: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%.40q: %v", id, err)
		}
		want[id] = true
	}
	got := map[string]bool{}
	for _, id := range ids(t, s, "") {
		got[id] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("listed ids (-want +got):\n%s", d)
	}
	for i, id := range all {
		if id == "" {
			continue
		}
		wantState(t, s, id, `{}`, fmt.Sprintf(`{"n":%d}`, i))
		must(t, s.Delete(t.Context(), id))
		if _, err := s.Get(t.Context(), id); !errors.Is(err, chstate.ErrNoState) {
			t.Errorf("%.40q is there after Delete: %v", id, err)
		}
		delete(want, id)
		if n := len(ids(t, s, "")); n != len(want) {
			t.Fatalf("deleting %.40q left %d ids, want %d", id, n, len(want))
		}
	}
}

// I03: patterns are fnmatch's.
func TestI03Patterns(t *testing.T) {
	s := newStore(t)
	var all []string
	b, err := os.ReadFile("testdata/cases/state_ids.json")
	must(t, err)
	must(t, json.Unmarshal(b, &all))
	all = append(all, `ends-with-\`)
	must1(t)(s.SetAll(t.Context(), func(yield func(chstate.State, error) bool) {
		for _, id := range all {
			if id != "" && !yield(chstate.State{ID: id, Completed: raw(`{"a":1}`)}, nil) {
				return
			}
		}
	}))
	b, err = os.ReadFile("testdata/cases/patterns_expected.json")
	must(t, err)
	var cases [][2]json.RawMessage
	must(t, json.Unmarshal(b, &cases))
	for _, c := range cases {
		var pattern string
		var want []string
		must(t, json.Unmarshal(c[0], &pattern))
		must(t, json.Unmarshal(c[1], &want))
		if d := cmp.Diff(want, ids(t, s, pattern)); d != "" {
			t.Errorf("pattern %q (-want +got):\n%s", pattern, d)
		}
	}
}

func must1(t testing.TB) func(int, error) int {
	return func(n int, err error) int { t.Helper(); must(t, err); return n }
}

func states(list ...chstate.State) iter.Seq2[chstate.State, error] {
	return func(yield func(chstate.State, error) bool) {
		for _, st := range list {
			if !yield(st, nil) {
				return
			}
		}
	}
}

// C10: many ids, few statements; counts stay right after sets and clears.
func TestC10Many(t *testing.T) {
	s := newStore(t)
	const n = 12_000
	list := make([]chstate.State, n)
	for i := range list {
		list[i] = chstate.State{ID: fmt.Sprintf("p%05d", i), Completed: raw(`{"n":1}`)}
	}
	for range 2 {
		if got := must1(t)(s.SetAll(t.Context(), states(list...))); got != n {
			t.Fatalf("SetAll wrote %d, want %d", got, n)
		}
	}
	must(t, s.Delete(t.Context(), "p00007"))
	seen := 0
	for st, err := range s.All(t.Context(), "p*") {
		must(t, err)
		if string(st.Completed) != `{"n":1}` {
			t.Fatalf("%s is %s", st.ID, st.Completed)
		}
		seen++
	}
	if seen != n-1 || len(ids(t, s, "")) != n-1 {
		t.Fatalf("All gave %d, IDs %d, want %d", seen, len(ids(t, s, "")), n-1)
	}
	if got := must1(t)(s.ClearAll(t.Context())); got != n-1 {
		t.Errorf("ClearAll cleared %d, want %d", got, n-1)
	}
	if got := must1(t)(s.ClearAll(t.Context())); got != 0 {
		t.Errorf("a second ClearAll cleared %d", got)
	}
}

func TestSetAllChecksBeforeItWrites(t *testing.T) {
	s := newStore(t)
	_, err := s.SetAll(t.Context(), states(
		chstate.State{ID: "good", Completed: raw(`{"a":1}`)},
		chstate.State{ID: "bad", Completed: raw(`"not an object"`)},
	))
	if !errors.Is(err, chstate.ErrInvalid) || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("got %v", err)
	}
	if got := ids(t, s, ""); len(got) != 0 {
		t.Errorf("wrote %v", got)
	}
}

// R04: a row dated in the future hides neither a locked nor an unlocked write.
func TestR04FutureRow(t *testing.T) {
	for _, write := range []struct {
		name string
		do   func(*chstate.Store, *testing.T, chstate.State) error
	}{
		{"Set", func(s *chstate.Store, t *testing.T, st chstate.State) error { return s.Set(t.Context(), st) }},
		{"Update", func(s *chstate.Store, t *testing.T, st chstate.State) error { return s.Update(t.Context(), st) }},
	} {
		t.Run(write.name, func(t *testing.T) {
			o := options(t)
			s := open(t, o)
			must(t, s.Prepare(t.Context()))
			chtest.SQL(t, fmt.Sprintf("INSERT INTO `%s`.state VALUES ('f', NULL, '{\"old\":1}', toDateTime64('2030-01-01 00:00:00', 3))", o.Schema))
			for i := range 3 {
				want := fmt.Sprintf(`{"new":%d}`, i)
				must(t, write.do(s, t, chstate.State{ID: "f", Completed: raw(want)}))
				wantState(t, s, "f", `{}`, want)
			}
			must(t, s.Delete(t.Context(), "f"))
			if _, err := s.Get(t.Context(), "f"); !errors.Is(err, chstate.ErrNoState) {
				t.Errorf("after Delete: %v", err)
			}
			must(t, write.do(s, t, chstate.State{ID: "f", Completed: raw(`{"again":1}`)}))
			wantState(t, s, "f", `{}`, `{"again":1}`)
		})
	}
}

// S10, S14: what somebody else stored.
func TestS10S14StoredByOthers(t *testing.T) {
	o := options(t)
	s := open(t, o)
	must(t, s.Prepare(t.Context()))
	chtest.SQL(t, fmt.Sprintf("INSERT INTO `%s`.state VALUES ('null', NULL, NULL, now64(3)), ('empty', '', '', now64(3)), ('twice', NULL, '\"{\\\\\"a\\\\\":1}\"', now64(3))", o.Schema))
	wantState(t, s, "null", `{}`, `{}`)
	wantState(t, s, "empty", `{}`, `{}`)
	st, err := s.Get(t.Context(), "twice")
	if !errors.Is(err, chstate.ErrCorrupt) || !strings.Contains(err.Error(), `"twice"`) || !strings.Contains(err.Error(), "JSON string, not an object") {
		t.Errorf("got %v", err)
	}
	if !strings.HasPrefix(string(st.Completed), `"{`) {
		t.Errorf("the text is not given along: %s", st.Completed)
	}
	if err := s.Update(t.Context(), chstate.State{ID: "twice", Partial: raw(`{"b":1}`)}); !errors.Is(err, chstate.ErrCorrupt) {
		t.Errorf("a partial update over it: %v", err)
	}
	must(t, s.Update(t.Context(), chstate.State{ID: "twice", Completed: raw(`{"b":1}`)}))
	wantState(t, s, "twice", `{}`, `{"b":1}`)
}

// S13: Meltano fails to merge an object into a scalar; so do we, by name, and keep the row.
func TestS13ScalarThenObject(t *testing.T) {
	s := newStore(t)
	read := func(f string) json.RawMessage {
		b, err := os.ReadFile("testdata/cases/" + f)
		must(t, err)
		return b
	}
	done, part := read("scalar_completed.json"), read("dict_partial_over_scalar.json")
	must(t, s.Set(t.Context(), chstate.State{ID: "p", Completed: done, Partial: part}))
	st, err := s.Get(t.Context(), "p")
	must(t, err)
	if _, err := st.Merged(); !errors.Is(err, chstate.ErrCorrupt) || !strings.Contains(err.Error(), `"p"`) {
		t.Errorf("Merged: %v", err)
	}
	wantState(t, s, "p", string(part), string(done))
}

func TestHistoryKeepsWhatIsReplaced(t *testing.T) {
	o := options(t)
	s := open(t, o)
	for i := range 5 { // one hold: the later ones add nothing
		must(t, s.Update(t.Context(), chstate.State{ID: "h", Completed: raw(fmt.Sprintf(`{"n":%d}`, i))}))
	}
	must(t, s.Set(t.Context(), chstate.State{ID: "h", Completed: raw(`{"n":"set"}`)}))
	must(t, s.Delete(t.Context(), "h"))
	got := chtest.SQL(t, fmt.Sprintf("SELECT reason, completed_state, archived_by != '' FROM `%s`.state_history FINAL ORDER BY updated_at FORMAT TSVRaw", o.Schema))
	want := "set\t{\"n\":4}\t1\ndelete\t{\"n\":\"set\"}\t1"
	if got != want {
		t.Errorf("history:\n%swant\n%s", got, want)
	}

	o.HistoryDays, o.Schema = -1, chtest.Schema(t)
	off := open(t, o)
	must(t, off.Update(t.Context(), chstate.State{ID: "h", Completed: raw(`{"n":1}`)}))
	must(t, off.Delete(t.Context(), "h"))
	if got := chtest.SQL(t, fmt.Sprintf("SELECT name FROM system.tables WHERE database = '%s' ORDER BY name FORMAT TSVRaw", o.Schema)); got != "state\nstate_lock" {
		t.Errorf("tables with history off: %q", got)
	}
}

func TestInvalidStates(t *testing.T) {
	s := newStore(t)
	for _, text := range []string{`[]`, `"x"`, `1`, `{"a":`, `{"a":1} trailing`, "\xff\xfe{", `{'a':1}`} {
		for name, err := range map[string]error{
			"Set":    s.Set(t.Context(), chstate.State{ID: "p", Completed: raw(text)}),
			"Update": s.Update(t.Context(), chstate.State{ID: "p", Partial: raw(text)}),
		} {
			if !errors.Is(err, chstate.ErrInvalid) || !strings.Contains(err.Error(), `"p"`) {
				t.Errorf("%s of %s: %v", name, text, err)
			}
		}
	}
	if got := ids(t, s, ""); len(got) != 0 {
		t.Errorf("wrote %v", got)
	}
}
