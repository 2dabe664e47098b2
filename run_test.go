package chstate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate"
)

// A run that is guarded excludes another one, and updates its state as always.
func TestLockRun(t *testing.T) {
	o := options(t)
	o.Command, o.Version = "chstate lock run a -- meltano run", "1.2.3"
	o.Lock.Wait = 300 * time.Millisecond
	o.Lock.Linger = -1
	s := open(t, o)
	h, err := s.LockRun(t.Context(), "a")
	must(t, err)
	must(t, s.Update(t.Context(), chstate.State{ID: "a", Completed: raw(`{"n":1}`)}))

	other := open(t, o)
	_, err = other.LockRun(t.Context(), "a")
	var locked *chstate.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("a second run: %v", err)
	}
	for _, want := range []string{
		`a whole run of "a" is locked by pid `, `running "chstate lock run a -- meltano run", chstate 1.2.3, since `, " ago), last heard of ",
		"break it: chstate lock release run:a --id '" + h.ClaimID() + "'",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ndoes not say %s", err, want)
		}
	}
	live, err := other.LocksOf(t.Context(), chstate.RunKey("a"))
	must(t, err)
	if len(live) != 1 || live[0].ReleaseCommand() != "chstate lock release run:a --id '"+h.ClaimID()+"'" {
		t.Errorf("locks: %+v", live)
	}
	h.Release()
	again, err := other.LockRun(t.Context(), "a")
	must(t, err)
	again.Release()
	if _, err := s.LockRun(t.Context(), ""); !errors.Is(err, chstate.ErrInvalid) {
		t.Errorf("a run of no id: %v", err)
	}
}

// Whatever the id, the command can be pasted into a shell.
func TestReleaseCommandIsQuoted(t *testing.T) {
	for id, want := range map[string]string{
		"dev:tap-a-to-target-b": "chstate lock release dev:tap-a-to-target-b --id '!x'",
		"50% off":               "chstate lock release '50% off' --id '!x'",
		"it's $HOME":            `chstate lock release 'it'\''s $HOME' --id '!x'`,
		"-rf":                   "chstate lock release --id '!x' -- -rf",
	} {
		if got := (chstate.LockInfo{ID: id, ClaimID: "!x"}).ReleaseCommand(); got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
}
