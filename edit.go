package chstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chstate/chstate/internal/statedoc"
)

// ErrChanged: the state is not the one any more that the caller read.
var ErrChanged = errors.New("state has changed")

// Replace writes both halves of st over a state, under its lock, if the state
// is still the version was: State.UpdatedAt of the one read, zero for none.
// Otherwise it fails with ErrChanged and writes nothing.
func (s *Store) Replace(ctx context.Context, was State, st State) error {
	if _, err := rowOf(st); err != nil { // before anything is locked
		return err
	}
	return s.locked(ctx, st.ID, func(h *Hold) error {
		var now State
		row, found, err := s.current(ctx, st.ID)
		if err != nil {
			return err
		}
		if found {
			h.row, h.known, now = row, true, stateOf(row)
		}
		if !now.UpdatedAt.Equal(was.UpdatedAt) {
			return &Error{
				Kind: ErrChanged, Reason: fmt.Sprintf("state %q was changed meanwhile by somebody else", st.ID),
				Advice: "nothing was written; read it again and repeat the change",
			}
		}
		return h.set(ctx, "set", st)
	})
}

// Reset is State.Without on what is stored, under the lock: the next run reads
// those streams from their beginning. After an error nothing is changed.
func (s *Store) Reset(ctx context.Context, id string, streams ...string) error {
	return s.locked(ctx, id, func(h *Hold) error {
		st, err := h.Get(ctx)
		if err != nil {
			return err
		}
		if st, err = st.Without(streams...); err != nil {
			return err
		}
		return h.set(ctx, "set", st)
	})
}

// Without gives the state without the bookmarks of some streams, in both
// halves, and with all others as they are written. It fails with ErrNoState
// when one of the streams has no bookmark.
func (s State) Without(streams ...string) (State, error) {
	was := s
	missing := make(map[string]bool, len(streams))
	for _, stream := range streams {
		missing[stream] = true
	}
	for _, text := range []*json.RawMessage{&s.Completed, &s.Partial} {
		kept, forgotten, err := statedoc.Forget(*text, streams...)
		if err != nil {
			return was, corrupt(s.ID, err)
		}
		*text = kept
		for _, stream := range forgotten {
			delete(missing, stream)
		}
	}
	for _, stream := range streams {
		if missing[stream] {
			return was, noStream(was, stream)
		}
	}
	return s, nil
}

func noStream(st State, stream string) error {
	e := &Error{
		Kind: ErrNoState, Reason: fmt.Sprintf("state %q has no bookmark of stream %q", st.ID, stream),
		Advice: "nothing was changed; it has no bookmarks at all",
	}
	if marks, err := st.Bookmarks(); err == nil && len(marks) > 0 {
		var names []string
		for i, b := range marks {
			if i == 20 {
				names = append(names, "…")
				break
			}
			names = append(names, b.Stream)
		}
		e.Advice = "nothing was changed; it has " + strings.Join(names, ", ")
	}
	return e
}
