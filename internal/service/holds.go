package service

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/chstate/chstate"
)

// held is a lock that the caller holds.
type held struct {
	hold    Hold
	stateID string
	request uint64      // that asked for it
	unwatch func() bool // ends the watch for its loss
	using   sync.Mutex  // a Hold takes one call at a time
}

// holds are the locks held, by number, and those being released, by state id.
type holds struct {
	last      uint64
	held      map[uint64]*held
	releasing map[string]chan struct{} // closed when released
}

func newHolds() holds {
	return holds{held: map[uint64]*held{}, releasing: map[string]chan struct{}{}}
}

// grantedTo gives the number of the hold that a request was granted, 0 if none.
func (h *holds) grantedTo(request uint64) uint64 {
	for n, x := range h.held {
		if x.request == request {
			return n
		}
	}
	return 0
}

// lock waits for the lock of a state id for as long as the store is willing
// to, or until the request is cancelled.
func (s *service) lock(ctx context.Context, j *job, stateID string) {
	// The release that this caller sent before is a request of its own, which
	// may still be on its way.
	s.mu.Lock()
	before := s.holds.releasing[stateID]
	s.mu.Unlock()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done():
		}
	}
	h, err := s.store.Lock(ctx, stateID)
	if err != nil {
		s.answer(j.id, nil, err)
		return
	}
	number, ok := s.grant(j, stateID, h)
	if !ok {
		h.Release()
		s.answer(j.id, nil, context.Canceled)
		return
	}
	_, revision := h.Known()
	s.answer(j.id, gotHold{number, revision}, nil)
}

// grant notes the hold, unless its request was given up meanwhile.
func (s *service) grant(j *job, stateID string, h Hold) (number uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.givenUp {
		return 0, false
	}
	s.holds.last++
	n := s.holds.last
	s.holds.held[n] = &held{
		hold: h, stateID: stateID, request: j.id,
		unwatch: context.AfterFunc(h.Context(), func() { s.tellLoss(n, h) }),
	}
	return n, true
}

// tellLoss says that a hold ended before its release.
func (s *service) tellLoss(number uint64, h Hold) {
	if err := context.Cause(h.Context()); errors.Is(err, chstate.ErrLockLost) {
		_ = s.w.send(event{Event: "lost", Hold: number, Error: asFailure(err)})
	}
}

// release starts giving a lock back. The caller does not wait for it; the
// next lock request for the same state id does.
func (s *service) release(number uint64) {
	s.mu.Lock()
	h := s.holds.held[number]
	if h == nil {
		s.mu.Unlock()
		return
	}
	delete(s.holds.held, number)
	released := make(chan struct{})
	s.holds.releasing[h.stateID] = released
	s.mu.Unlock()

	h.unwatch()
	s.running.Go(func() {
		h.using.Lock()
		defer h.using.Unlock()
		h.hold.Release()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.holds.releasing[h.stateID] == released {
			delete(s.holds.releasing, h.stateID)
		}
		close(released)
	})
}

// releaseAll starts giving back every lock.
func (s *service) releaseAll() {
	s.mu.Lock()
	numbers := make([]uint64, 0, len(s.holds.held))
	for n := range s.holds.held {
		numbers = append(numbers, n)
	}
	s.mu.Unlock()
	for _, n := range numbers {
		s.release(n)
	}
}

// under does one call under the hold that the request names.
func (s *service) under(req request, do func(Hold) error) error {
	h := s.heldFor(req)
	if h != nil {
		h.using.Lock()
		defer h.using.Unlock()
		h = s.heldFor(req) // it may have been given back while this call waited for its turn
	}
	if h == nil {
		return &failure{Code: codeLockLost, Message: fmt.Sprintf("the lock of state %q is not held any more, "+
			"so nothing was done — run again", req.StateID)}
	}
	return do(h.hold)
}

// heldFor gives the hold that a request names, nil when that is not held.
func (s *service) heldFor(req request) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holds.held[req.Hold]; h != nil && h.stateID == req.StateID {
		return h
	}
	return nil
}
