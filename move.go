package chstate

import (
	"context"
	"errors"
	"fmt"

	"github.com/chstate/chstate/internal/statedoc"
	"github.com/chstate/chstate/lock"
)

// Copy writes what a run of from would start from (State.Merged) over to, as
// to's completed half and under to's lock. It fails with ErrNoState when from
// has no state, or an empty one; then nothing is changed. (StateService.copy_state)
func (s *Store) Copy(ctx context.Context, from, to string) error {
	merged, err := s.merged(ctx, from)
	if err != nil {
		return err
	}
	return s.locked(ctx, to, func(h *Hold) error {
		return h.set(ctx, "set", State{Completed: merged})
	})
}

// Move is Copy, and then clears from, under the locks of both. At each moment
// one of them has the state, or both: after an error the error says which. What
// somebody writes to from without its lock meanwhile stays there. Moving a state
// onto itself is ErrInvalid. (StateService.move_state)
func (s *Store) Move(ctx context.Context, from, to string) error {
	if from == to {
		return &Error{
			Kind: ErrInvalid, Reason: fmt.Sprintf("state %q cannot be moved onto itself", from),
			Advice: "name another id to move it to; nothing was changed",
		}
	}
	if _, err := s.merged(ctx, from); err != nil { // before anything is locked
		return err
	}
	// In order of the ids, so that two moves in opposite directions do not wait
	// for each other for ever.
	return s.locked(ctx, min(from, to), func(first *Hold) error {
		return s.locked(ctx, max(from, to), func(second *Hold) error {
			if from < to {
				return first.moveTo(ctx, second)
			}
			return second.moveTo(ctx, first)
		})
	})
}

func (h *Hold) moveTo(ctx context.Context, to *Hold) error {
	st, err := h.Get(ctx)
	if err != nil {
		return err
	}
	merged, err := somethingOf(st)
	if err != nil {
		return err
	}
	if err := to.set(ctx, "set", State{Completed: merged}); err != nil {
		return err
	}
	read := h.row.UpdatedAt
	err = h.write(ctx, "delete", func(ctx context.Context, _ lock.Millis) error {
		return h.s.db.Delete(ctx, h.id, read+1)
	})
	if err == nil {
		return nil
	}
	err = h.s.wrap(err, "clear state %q", h.id)
	e := &Error{
		Kind: ErrServer, Err: err, Reason: fmt.Sprintf("state %q was copied to %q, but %q was not cleared: %v", h.id, to.id, h.id, err),
		Advice: "both have it now; move it again",
	}
	for _, kind := range []error{ErrLockLost, ErrConnect, ErrClosed} {
		if errors.Is(err, kind) {
			e.Kind = kind
		}
	}
	return e
}

// MergeFrom merges what a run of from would start from onto to's partial half,
// under to's lock. It fails with ErrNoState when from has no state, or an
// empty one; that to has none is no error. (StateService.merge_state)
func (s *Store) MergeFrom(ctx context.Context, from, to string) error {
	merged, err := s.merged(ctx, from)
	if err != nil {
		return err
	}
	return s.Merge(ctx, State{ID: to, Partial: merged})
}

func (s *Store) merged(ctx context.Context, id string) ([]byte, error) {
	st, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return somethingOf(st)
}

// somethingOf gives the merged state, unless there is nothing in it: written
// elsewhere, that would clear what is there.
func somethingOf(st State) ([]byte, error) {
	merged, err := st.Merged()
	if err != nil {
		return nil, err
	}
	if statedoc.Empty(merged) {
		return nil, &Error{Kind: ErrNoState, Reason: fmt.Sprintf("state %q is empty", st.ID), Advice: "nothing was changed"}
	}
	return merged, nil
}
