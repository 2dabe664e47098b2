package chstate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

func TestLocksAndBreakLock(t *testing.T) {
	o := options(t)
	o.Command = "meltano run a b"
	o.Lock.Lease = 3 * time.Second
	s := open(t, o)
	if got, err := s.Locks(t.Context()); err != nil || len(got) != 0 {
		t.Fatalf("locks of nobody: %v, %v", got, err)
	}
	h, err := s.Lock(t.Context(), "p")
	must(t, err)
	other := open(t, o)
	_, err = other.Lock(t.Context(), "q")
	must(t, err)

	all, err := s.Locks(t.Context())
	must(t, err)
	if len(all) != 2 || all[0].ID != "p" || all[1].ID != "q" || all[0].Holder.Command != "meltano run a b" || all[0].Waiting {
		t.Fatalf("locks: %+v", all)
	}
	if l := all[0]; l.FreeAt.Before(l.Now) || l.Now.Sub(l.Seen).Abs() > time.Minute {
		t.Errorf("times: %+v", l)
	}

	if _, err := other.BreakLock(t.Context(), "p", "!no-such-claim"); !errors.Is(err, chstate.ErrNoState) {
		t.Errorf("breaking a claim that is not there: %v", err)
	}
	broken, err := other.BreakLock(t.Context(), "p", all[0].ClaimID)
	must(t, err)
	if len(broken) != 1 || broken[0].ClaimID != h.ClaimID() {
		t.Fatalf("broke %+v", broken)
	}
	// Free at once for others; the one who held it is told.
	must(t, other.Update(t.Context(), chstate.State{ID: "p", Completed: raw(`{"new":1}`)}))
	select {
	case <-h.Context().Done():
	case <-time.After(2 * o.Lock.Lease):
		t.Fatal("the holder was not told")
	}
	if err := h.Set(t.Context(), chstate.State{Completed: raw(`{"old":1}`)}); !errors.Is(err, chstate.ErrLockLost) {
		t.Errorf("the old holder wrote: %v", err)
	}
	wantState(t, s, "p", `{}`, `{"new":1}`)
	if broken, err := s.BreakLock(t.Context(), "nobody's", ""); err != nil || len(broken) != 0 {
		t.Errorf("breaking nothing: %v, %v", broken, err)
	}
}

// A claim of the older plugin is shown, respected, and can be broken.
func TestForeignClaim(t *testing.T) {
	o := options(t)
	o.Lock.Wait = 300 * time.Millisecond
	s := open(t, o)
	must(t, s.Prepare(t.Context()))
	claim := func() {
		chtest.SQL(t, fmt.Sprintf("INSERT INTO `%s`.state_lock (state_id, lock_id) VALUES ('p', '0b7f2c1e-0000-4000-8000-000000000000')", o.Schema))
	}
	claim()
	st := chstate.State{ID: "p", Completed: raw(`{"n":1}`)}
	var locked *chstate.LockedError
	if err := s.Update(t.Context(), st); !errors.As(err, &locked) || locked.Holder.PID != 0 {
		t.Fatalf("got %v", err)
	}
	broken, err := s.BreakLock(t.Context(), "p", "")
	must(t, err)
	if len(broken) != 1 {
		t.Fatalf("broke %+v", broken)
	}
	must(t, s.Update(t.Context(), st))
	rows := chtest.SQL(t, fmt.Sprintf("SELECT count() FROM `%s`.state_lock WHERE lock_id NOT LIKE '!%%'", o.Schema))
	if rows != "0" {
		t.Errorf("%s rows of the older plugin's claim are left", rows)
	}
}
