package service

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/chstate/chstate"
)

// Store is what the service needs of *chstate.Store; see there.
type Store interface {
	Warm(ctx context.Context) error
	Prepare(ctx context.Context) error
	Get(ctx context.Context, id string) (chstate.State, error)
	Set(ctx context.Context, st chstate.State) error
	Delete(ctx context.Context, id string) error
	IDs(ctx context.Context, pattern string) iter.Seq2[string, error]
	All(ctx context.Context, pattern string) iter.Seq2[chstate.State, error]
	SetAll(ctx context.Context, states iter.Seq2[chstate.State, error]) (int, error)
	ClearAll(ctx context.Context) (int, error)
	Migrate(ctx context.Context) error
	Lock(ctx context.Context, id string) (Hold, error)
	Close() error
}

// Hold is what the service needs of *chstate.Hold; see there.
type Hold interface {
	Context() context.Context
	Get(ctx context.Context) (chstate.State, error)
	Known() (st chstate.State, revision uint64)
	Set(ctx context.Context, st chstate.State) error
	Delete(ctx context.Context) error
	Release()
}

// Of makes the library's store a Store.
func Of(s *chstate.Store) Store { return libraryStore{s} }

type libraryStore struct{ *chstate.Store }

func (s libraryStore) Lock(ctx context.Context, id string) (Hold, error) {
	h, err := s.Store.Lock(ctx, id)
	if err != nil { // a nil *Hold must not become a Hold that is not nil
		return nil, err
	}
	return h, nil
}

// toState makes a state of what came over the wire.
func (w wireState) toState() chstate.State {
	half := func(text *string) json.RawMessage {
		if text == nil {
			return nil
		}
		return json.RawMessage(*text)
	}
	return chstate.State{ID: w.ID, Partial: half(w.Partial), Completed: half(w.Completed)}
}

// toWire makes a state ready for the wire. JSON can carry only UTF-8, and a
// byte that is silently replaced would be a changed bookmark: refused.
func toWire(st chstate.State) (wireState, error) {
	id, err := idToWire(st.ID)
	if err != nil {
		return wireState{}, err
	}
	w := wireState{ID: id}
	for _, half := range []struct {
		text json.RawMessage
		to   **string
		name string
	}{
		{st.Partial, &w.Partial, "its partial half"},
		{st.Completed, &w.Completed, "its completed half"},
	} {
		if len(half.text) == 0 {
			continue
		}
		if !utf8.Valid(half.text) {
			return wireState{}, notUTF8(st.ID, half.name)
		}
		s := string(half.text)
		*half.to = &s
	}
	return w, nil
}

func notUTF8(id, what string) error {
	return &failure{Code: codeCorrupt, Message: fmt.Sprintf("cannot read state %q: %s is not UTF-8 text — "+
		"look at the row with `chstate get` and store it anew, or clear it", id, what)}
}

func idToWire(id string) (string, error) {
	if !utf8.ValidString(id) {
		return "", notUTF8(id, "its id")
	}
	return id, nil
}

// size is about how much text the state is.
func (w wireState) size() int {
	n := len(w.ID)
	for _, half := range []*string{w.Partial, w.Completed} {
		if half != nil {
			n += len(*half)
		}
	}
	return n
}
