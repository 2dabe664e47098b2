package chstate

import (
	"context"
	"fmt"
	"time"

	"github.com/chstate/chstate/internal/clickhouse"
	"github.com/chstate/chstate/internal/statedoc"
	"github.com/chstate/chstate/lock"
)

// Hold is the lock of one state id, held over several calls. Its methods are
// not for several goroutines at once.
type Hold struct {
	s     *Store
	id    string
	lock  *lock.Hold
	row   clickhouse.Row // the last one read or written under the lock
	known bool           // row was read, or found missing
}

// Lock takes the lock of a state id, waiting for it for at most
// Options.Lock.Wait; ErrLocked (a *LockedError) names who kept it. It is
// Meltano's acquire_lock. Release the hold in any case.
func (s *Store) Lock(ctx context.Context, id string) (*Hold, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := s.db.Prepare(ctx); err != nil { // connecting must not use up the lease
		return nil, s.wrap(err, "lock state %q", id)
	}
	l, err := s.locker.Acquire(ctx, id)
	if err != nil {
		return nil, s.wrap(err, "lock state %q", id)
	}
	return &Hold{s: s, id: id, lock: l}, nil
}

// Update writes under the lock by Meltano's rule: a complete state replaces
// what is there, a partial one is merged onto the partial half that is there.
// (StateStoreManager.update)
func (s *Store) Update(ctx context.Context, st State) error {
	if _, err := rowOf(st); err != nil { // before anything is locked
		return err
	}
	return s.locked(ctx, st.ID, func(h *Hold) error { return h.Update(ctx, st) })
}

// Merge is Update by a partial state, for people: it writes nothing, and fails
// with ErrInvalid, where the two halves would not fit together afterwards.
// Update writes such a state as Meltano does, and nobody can run from it.
func (s *Store) Merge(ctx context.Context, st State) error {
	st.Completed = nil
	if _, err := rowOf(st); err != nil {
		return err
	}
	return s.locked(ctx, st.ID, func(h *Hold) error {
		merged, err := h.onto(ctx, st)
		if err != nil {
			return err
		}
		if _, err := statedoc.Merge(half(merged.Partial), half(merged.Completed)); err != nil {
			return &Error{
				Kind: ErrInvalid, Op: fmt.Sprintf("merge onto state %q", st.ID), Reason: err.Error(),
				Advice: "nothing was written; `chstate get` shows what is there, `chstate set` replaces it", Err: err,
			}
		}
		return h.Set(ctx, merged)
	})
}

// Delete removes a state under the lock; what is not there is no error. What
// it removes goes to the history. (StateStoreManager.clear)
func (s *Store) Delete(ctx context.Context, id string) error {
	return s.locked(ctx, id, func(h *Hold) error { return h.Delete(ctx) })
}

func (s *Store) locked(ctx context.Context, id string, do func(*Hold) error) error {
	h, err := s.Lock(ctx, id)
	if err != nil {
		return err
	}
	defer h.Release()
	return do(h)
}

// ClaimID names the claim in the lock table. Holds of one store that follow
// each other closely share it.
func (h *Hold) ClaimID() string { return h.lock.ClaimID() }

// Context ends before the lock does; its cause is then ErrLockLost. Work done
// under the lock should end with it.
func (h *Hold) Context() context.Context { return h.lock.Context() }

// Get gives the held state, read now or Known. Errors as Store.Get's, and ErrLockLost.
func (h *Hold) Get(ctx context.Context) (State, error) {
	if err := h.lock.Check(); err != nil {
		return State{}, h.s.wrap(err, "read state %q", h.id)
	}
	if st, revision := h.Known(); revision != 0 {
		return st, nil
	}
	unlocked, asked := h.s.unlocked.Load(), time.Now()
	row, err := h.s.get(ctx, h.id)
	if err != nil && !isNoState(err) {
		return State{}, err
	}
	row, found := h.newer(row, err == nil)
	if !found {
		return State{}, err
	}
	st := h.readAs(row)
	if err := st.Check(); err != nil {
		return st, err
	}
	h.keep(row, asked, unlocked)
	return st, nil
}

// Update is Store.Update under the lock that is held.
func (h *Hold) Update(ctx context.Context, st State) error {
	if !st.IsComplete() {
		var err error
		if st, err = h.onto(ctx, st); err != nil {
			return err
		}
	}
	return h.Set(ctx, st)
}

// onto merges the partial half of a state onto the one that is there.
func (h *Hold) onto(ctx context.Context, st State) (State, error) {
	now, err := h.Get(ctx)
	switch {
	case isNoState(err):
		return st, nil
	case err != nil:
		return st, err
	}
	merged, err := statedoc.Merge(half(st.Partial), half(now.Partial))
	if err != nil {
		return st, corrupt(h.id, err)
	}
	st.Partial, st.Completed = merged, now.Completed
	return st, nil
}

// Set writes both halves of the held state over whatever is there; st.ID is
// ignored. It fails with ErrLockLost when the write may have come too late for
// a later holder to see.
func (h *Hold) Set(ctx context.Context, st State) error { return h.set(ctx, "update", st) }

func (h *Hold) set(ctx context.Context, reason string, st State) error {
	st.ID = h.id
	row, err := rowOf(st)
	if err != nil {
		return err
	}
	unlocked, read := h.s.unlocked.Load(), time.Now()
	if k := h.kept(); k != nil {
		read = k.read // this write asks nothing
	}
	err = h.write(ctx, reason, func(ctx context.Context, v lock.Millis) error {
		row.UpdatedAt = v
		return h.s.db.Insert(ctx, row)
	})
	if err == nil {
		h.keep(row, read, unlocked)
	}
	return h.s.wrap(err, "write state %q", h.id)
}

// Delete removes the held state; what is not there is no error.
func (h *Hold) Delete(ctx context.Context) error {
	err := h.write(ctx, "delete", func(ctx context.Context, v lock.Millis) error {
		return h.s.db.Delete(ctx, h.id, v)
	})
	return h.s.wrap(err, "delete state %q", h.id)
}

// write sends one write. The first one of a claim, and whatever is more than an
// update, first copies the row that it replaces to the history. The row's version must be
// known before anything is written over it: a row dated in the future
// would hide the write.
func (h *Hold) write(ctx context.Context, reason string, send func(context.Context, lock.Millis) error) error {
	if err := h.lock.Check(); err != nil {
		return err
	}
	h.lock.Keep(nil) // until it is known what became of the write
	switch fresh := !h.lock.Written(); {
	case fresh && !h.known:
		_, newest, err := h.s.before(ctx, reason, h.id)
		if err != nil {
			return err
		}
		h.row.UpdatedAt, h.known = newest[h.id], true
	case fresh || reason != "update":
		if err := h.s.db.Archive(ctx, reason, h.s.by, h.id); err != nil {
			return err
		}
	}
	return h.lock.Write(ctx, h.row.UpdatedAt, send)
}

// Release gives the lock back, or keeps it in the process for a moment for the
// next update of the id. It is not cancelled with the work, and may be called
// more than once.
func (h *Hold) Release() { h.lock.Release() }
