package chstate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

// L04 in one process: stores that know nothing of each other add to one state;
// no addition is lost.
func TestL04ReadAddWrite(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 12
	o := options(t)
	o.Lock.Wait = time.Minute
	var all sync.WaitGroup
	for range writers {
		s := open(t, o)
		all.Go(func() {
			for range each {
				if err := addOne(t, s); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	wantState(t, open(t, o), "sum", `{}`, fmt.Sprintf(`{"n":%d}`, writers*each))
}

func addOne(t *testing.T, s *chstate.Store) error {
	h, err := s.Lock(t.Context(), "sum")
	if err != nil {
		return err
	}
	defer h.Release()
	var sum struct {
		N int `json:"n"`
	}
	switch st, err := h.Get(t.Context()); {
	case errors.Is(err, chstate.ErrNoState):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(st.Completed, &sum); err != nil {
			return err
		}
	}
	sum.N++
	text, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	return h.Set(t.Context(), chstate.State{Completed: text})
}

func TestLockedNamesTheHolder(t *testing.T) {
	o := options(t)
	o.Command = "meltano run tap target"
	holder := open(t, o)
	h, err := holder.Lock(t.Context(), "p")
	must(t, err)
	o.Lock.Wait = 300 * time.Millisecond
	waiter := open(t, o)
	err = waiter.Update(t.Context(), chstate.State{ID: "p", Completed: raw(`{"a":1}`)})
	var locked *chstate.LockedError
	if !errors.As(err, &locked) || !errors.Is(err, chstate.ErrLocked) {
		t.Fatalf("got %v", err)
	}
	if locked.ID != "p" || locked.Holder.Command != "meltano run tap target" || locked.Holder.PID == 0 ||
		locked.FreeAt.Before(locked.Seen) || time.Since(locked.Since).Abs() > time.Hour {
		t.Errorf("got %+v", locked)
	}
	if !strings.Contains(err.Error(), "meltano run tap target") {
		t.Errorf("the message does not name the command: %v", err)
	}
	// Others are not in the way, and reading needs no lock.
	must(t, waiter.Update(t.Context(), chstate.State{ID: "q", Completed: raw(`{"a":1}`)}))
	wantState(t, waiter, "q", `{}`, `{"a":1}`)

	must(t, h.Set(t.Context(), chstate.State{Completed: raw(`{"b":1}`)}))
	h.Release()
	h.Release() // again is harmless
	o.Lock.Wait = 10 * time.Second
	must(t, open(t, o).Update(t.Context(), chstate.State{ID: "p", Partial: raw(`{"c":1}`)}))
	wantState(t, waiter, "p", `{"c":1}`, `{"b":1}`)
}

// What waits is told who is in the way, and gets the lock when that one lets go.
// TestLockedByThisProcess: who waits for another goroutine of its own is told so,
// without times that nobody knows and without the advice to break the lock; and
// where both wait for somebody else, that one is named to both.
func TestLockedByThisProcess(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Lock.Wait = 500 * time.Millisecond
	s := open(t, o)
	held, err := s.Lock(t.Context(), "a")
	must(t, err)
	var locked *chstate.LockedError
	if _, err := s.Lock(t.Context(), "a"); !errors.As(err, &locked) || !strings.Contains(err.Error(), "another call of this process") ||
		strings.Contains(err.Error(), "1970") || strings.Contains(err.Error(), "release") || !locked.FreeAt.IsZero() || locked.ClaimID != held.ClaimID() {
		t.Errorf("held here: %v", err)
	}
	other := open(t, o)
	failed := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := other.Lock(t.Context(), "a")
			failed <- err
		}()
	}
	for range 2 {
		if err := <-failed; !errors.As(err, &locked) || locked.ClaimID != held.ClaimID() || locked.FreeAt.IsZero() {
			t.Errorf("held elsewhere: %v", err)
		}
	}
	held.Release()
}

// TestSettleNeedsALongerLease: two of its pauses go by before a lock is had.
func TestSettleNeedsALongerLease(t *testing.T) {
	o := options(t)
	o.Lock.Strategy, o.Lock.Lease, o.Lock.Settle = "settle", 2*time.Second, time.Second
	if _, err := chstate.Open(t.Context(), o); !errors.Is(err, chstate.ErrSettings) || !strings.Contains(err.Error(), "make it 4s or more") {
		t.Errorf("got %v", err)
	}
}

func TestHandOver(t *testing.T) {
	o := options(t)
	h, err := open(t, o).Lock(t.Context(), "p")
	must(t, err)
	got := make(chan error, 1)
	second := open(t, o)
	go func() { got <- second.Update(t.Context(), chstate.State{ID: "p", Completed: raw(`{"a":1}`)}) }()
	select {
	case err := <-got:
		t.Fatalf("two holders at once: %v", err)
	case <-time.After(700 * time.Millisecond):
	}
	h.Release()
	must(t, <-got)
}

// A store that is closed leaves no live claim behind, also of a hold in use.
func TestCloseFreesAtOnce(t *testing.T) {
	o := options(t)
	first, err := chstate.Open(t.Context(), o)
	must(t, err)
	h, err := first.Lock(t.Context(), "held")
	must(t, err)
	must(t, first.Update(t.Context(), chstate.State{ID: "lingers", Completed: raw(`{"a":1}`)}))
	must(t, first.Close())
	if err := h.Set(t.Context(), chstate.State{Completed: raw(`{"late":1}`)}); err == nil {
		t.Error("a write after Close was taken")
	}
	o.Lock.Wait = 100 * time.Millisecond
	second := open(t, o)
	for _, id := range []string{"held", "lingers"} {
		must(t, second.Update(t.Context(), chstate.State{ID: id, Completed: raw(`{"b":1}`)}))
	}
	live := chtest.SQL(t, fmt.Sprintf("SELECT count() FROM `%s`.state_lock FINAL WHERE released = 0", o.Schema))
	if live != "2" { // the two that linger in second
		t.Errorf("%s live claims", live)
	}
}

// A hold whose lock was broken by an administrator writes nothing more.
func TestBrokenLockRefusesWrites(t *testing.T) {
	o := options(t)
	o.Lock.Lease = 2 * time.Second
	s := open(t, o)
	h, err := s.Lock(t.Context(), "p")
	must(t, err)
	chtest.SQL(t, fmt.Sprintf("TRUNCATE TABLE `%s`.state_lock", o.Schema))
	select {
	case <-h.Context().Done():
	case <-time.After(5 * time.Second):
		t.Fatal("nobody noticed")
	}
	err = h.Set(t.Context(), chstate.State{Completed: raw(`{"a":1}`)})
	if !errors.Is(err, chstate.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	h.Release()
	if got := ids(t, s, ""); len(got) != 0 {
		t.Errorf("wrote %v", got)
	}
}
