package chstate

import (
	"context"
	"fmt"
	"strings"

	"github.com/chstate/chstate/lock"
)

// runPrefix before a state id makes the key of its whole-run lock.
const runPrefix = "run:"

// RunKey gives the key under which a whole run of a state id is locked; Locks,
// LocksOf and BreakLock know that lock by it.
func RunKey(id string) string { return runPrefix + id }

// RunHold guards a whole run of a state id, see Store.LockRun.
type RunHold struct {
	lock *lock.Hold
}

// LockRun takes the lock of a whole run of a state id. It is another lock than
// that of the state, so that what runs may update the state as always; it
// excludes other holders of LockRun alone. Times and errors are those of Lock.
// Release the hold in any case.
func (s *Store) LockRun(ctx context.Context, id string) (*RunHold, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	h, err := s.Lock(ctx, RunKey(id))
	if err != nil {
		return nil, err
	}
	return &RunHold{lock: h.lock}, nil
}

// ClaimID names the claim in the lock table.
func (h *RunHold) ClaimID() string { return h.lock.ClaimID() }

// Context ends before the lock does; its cause is then ErrLockLost.
func (h *RunHold) Context() context.Context { return h.lock.Context() }

// Release gives the lock back. It may be called more than once.
func (h *RunHold) Release() { h.lock.Release() }

// lockName names a lock for people by its key.
func lockName(key string) string {
	if id, ok := strings.CutPrefix(key, runPrefix); ok && id != "" {
		return fmt.Sprintf("a whole run of %q", id)
	}
	return fmt.Sprintf("state %q", key)
}
