package chstate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chstate/chstate"
)

const (
	halfDone = `{"singer_state":{"bookmarks":{"s":{"v":2}}}}`
	finished = `{"singer_state":{"bookmarks":{"s":{"v":1.0},"t":9007199254740993}}}`
	together = `{"singer_state":{"bookmarks":{"s":{"v":2},"t":9007199254740993}}}`
)

func TestCopyAndMove(t *testing.T) {
	s := newStore(t)
	must(t, s.Set(t.Context(), chstate.State{ID: "a", Partial: raw(halfDone), Completed: raw(finished)}))
	must(t, s.Set(t.Context(), chstate.State{ID: "b", Partial: raw(`{"old":1}`)}))
	must(t, s.Copy(t.Context(), "a", "b"))
	wantState(t, s, "a", halfDone, finished)
	wantState(t, s, "b", `{}`, together)
	all := wantVersions(t, s, "b", together+" current", `{} set`)
	if string(all[1].Partial) != `{"old":1}` {
		t.Errorf("what the copy replaced is not in the history: %+v", all[1])
	}

	for _, ids := range [][2]string{{"a", "z"}, {"z", "m"}} { // both orders of the locks
		must(t, s.Move(t.Context(), ids[0], ids[1]))
		wantState(t, s, ids[1], `{}`, together)
		if _, err := s.Get(t.Context(), ids[0]); !errors.Is(err, chstate.ErrNoState) {
			t.Errorf("%s is still there after it was moved: %v", ids[0], err)
		}
	}
	wantVersions(t, s, "z", together+" delete")
}

// From nothing, or onto itself, nothing is changed, and nothing is locked.
func TestMoveRefused(t *testing.T) {
	o := options(t)
	o.Lock.Wait = -1
	s := open(t, o)
	must(t, s.Set(t.Context(), chstate.State{ID: "a", Completed: raw(finished)}))
	must(t, s.Set(t.Context(), chstate.State{ID: "empty"}))
	h, err := open(t, options(t)).Lock(t.Context(), "a")
	must(t, err)
	defer h.Release()
	for _, tt := range []struct {
		from, to string
		kind     error
	}{
		{"a", "a", chstate.ErrInvalid}, {"nothing", "a", chstate.ErrNoState}, {"empty", "a", chstate.ErrNoState},
		{"", "a", chstate.ErrInvalid}, {"a", "", chstate.ErrInvalid},
	} {
		if err := s.Move(t.Context(), tt.from, tt.to); !errors.Is(err, tt.kind) {
			t.Errorf("moving %q to %q: %v, want %v", tt.from, tt.to, err, tt.kind)
		}
		if tt.from == tt.to {
			continue
		}
		for name, do := range map[string]func(context.Context, string, string) error{"copy": s.Copy, "merge": s.MergeFrom} {
			if err := do(t.Context(), tt.from, tt.to); !errors.Is(err, tt.kind) {
				t.Errorf("%s of %q to %q: %v, want %v", name, tt.from, tt.to, err, tt.kind)
			}
		}
	}
	wantState(t, s, "a", `{}`, finished)
	wantVersions(t, s, "a", finished+" current")
}

// Moves in opposite directions do not wait for each other for ever, and the
// state is in one of the two places at each moment.
func TestMovesAgainstEachOther(t *testing.T) {
	s := newStore(t)
	must(t, s.Set(t.Context(), chstate.State{ID: "a", Completed: raw(finished)}))
	ends := make(chan error, 2)
	ctx, stop := context.WithCancel(t.Context())
	for _, ids := range [][2]string{{"a", "b"}, {"b", "a"}} {
		go func() {
			for ctx.Err() == nil {
				if err := s.Move(context.WithoutCancel(ctx), ids[0], ids[1]); err != nil && !errors.Is(err, chstate.ErrNoState) {
					ends <- err
					return
				}
			}
			ends <- nil
		}()
	}
	looks := 0
	for until := time.Now().Add(time.Second); time.Now().Before(until); looks++ {
		n := 0
		for _, err := range s.Of(t.Context(), []string{"a", "b"}) {
			must(t, err)
			n++
		}
		if n == 0 {
			t.Error("neither place has the state")
		}
	}
	stop()
	must(t, <-ends)
	must(t, <-ends)
	if looks < 5 {
		t.Errorf("only %d looks were taken", looks)
	}
}

func TestMergeFrom(t *testing.T) {
	s := newStore(t)
	must(t, s.Set(t.Context(), chstate.State{ID: "a", Completed: raw(`{"singer_state":{"bookmarks":{"s":{"v":7}}}}`)}))
	must(t, s.Set(t.Context(), chstate.State{ID: "b", Partial: raw(halfDone), Completed: raw(finished)}))
	must(t, s.MergeFrom(t.Context(), "a", "b"))
	wantState(t, s, "b", `{"singer_state":{"bookmarks":{"s":{"v":7}}}}`, finished)
	must(t, s.MergeFrom(t.Context(), "a", "new"))
	wantState(t, s, "new", `{"singer_state":{"bookmarks":{"s":{"v":7}}}}`, `{}`)
}
