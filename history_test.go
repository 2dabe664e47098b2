package chstate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate"
)

// versions gives the history as "completed reason", newest first.
func versions(t testing.TB, s *chstate.Store, id string) ([]string, []chstate.Version) {
	t.Helper()
	texts, all := []string{}, []chstate.Version{}
	for v, err := range s.History(t.Context(), id) {
		must(t, err)
		reason := v.Reason
		if v.Current {
			reason = "current"
		}
		texts, all = append(texts, fmt.Sprintf("%s %s", v.Completed, reason)), append(all, v)
	}
	return texts, all
}

func wantVersions(t testing.TB, s *chstate.Store, id string, want ...string) []chstate.Version {
	t.Helper()
	got, all := versions(t, s, id)
	if d := cmp.Diff(append([]string{}, want...), got); d != "" {
		t.Fatalf("versions (-want +got):\n%s", d)
	}
	return all
}

func TestHistoryAndRollback(t *testing.T) {
	o := options(t)
	o.Lock.Linger = -1 // each update is a run of its own
	s := open(t, o)
	put := func(text string) {
		t.Helper()
		must(t, s.Update(t.Context(), chstate.State{ID: "h", Completed: raw(text)}))
	}
	put(`{"n":1}`)
	put(`{"n":2}`)
	all := wantVersions(t, s, "h", `{"n":2} current`, `{"n":1} update`)
	if v := all[1]; v.ReplacedBy == "" || v.ReplacedAt.Before(v.UpdatedAt) {
		t.Errorf("the replaced version is %+v", v)
	}

	took, err := s.Rollback(t.Context(), "h", all[1].UpdatedAt)
	must(t, err)
	if string(took.Completed) != `{"n":1}` {
		t.Errorf("rolled back to %s", took.Completed)
	}
	all = wantVersions(t, s, "h", `{"n":1} current`, `{"n":2} rollback`, `{"n":1} update`)
	// A moment between two versions means the one that was current then.
	_, err = s.Rollback(t.Context(), "h", all[0].UpdatedAt.Add(-time.Millisecond))
	must(t, err)
	wantVersions(t, s, "h", `{"n":2} current`, `{"n":1} rollback`, `{"n":2} rollback`, `{"n":1} update`)

	must(t, s.Delete(t.Context(), "h"))
	all = wantVersions(t, s, "h", `{"n":2} delete`, `{"n":1} rollback`, `{"n":2} rollback`, `{"n":1} update`)
	_, err = s.Rollback(t.Context(), "h", time.Now().Add(time.Hour))
	must(t, err)
	wantState(t, s, "h", `{}`, `{"n":2}`)

	_, err = s.Rollback(t.Context(), "h", all[3].UpdatedAt.Add(-time.Hour))
	if !errors.Is(err, chstate.ErrNoState) {
		t.Errorf("rolling back to before the first version: %v", err)
	}
	wantVersions(t, s, "never there")

	n := must1(t)(s.PruneHistory(t.Context(), time.Now().Add(time.Hour)))
	if n != 4 {
		t.Errorf("pruned %d versions, want 4", n)
	}
	wantVersions(t, s, "h", `{"n":2} current`)
}

// Clearing and importing leave a way back too.
func TestHistoryOfBulkWrites(t *testing.T) {
	s := newStore(t)
	must(t, s.Set(t.Context(), chstate.State{ID: "a", Completed: raw(`{"n":1}`)}))
	must1(t)(s.SetAll(t.Context(), states(chstate.State{ID: "a", Completed: raw(`{"n":2}`)}, chstate.State{ID: "b", Completed: raw(`{"n":3}`)})))
	must1(t)(s.ClearAll(t.Context()))
	wantVersions(t, s, "a", `{"n":2} clear_all`, `{"n":1} import`)
	wantVersions(t, s, "b", `{"n":3} clear_all`)
}
