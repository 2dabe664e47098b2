package lock

import (
	"context"
	"sync"
	"time"
)

// Hold is a lock that is held, from Acquire to Release.
type Hold struct {
	lease *lease
	seat  *seat
	once  sync.Once
}

func newHold(h *lease, s *seat) *Hold {
	s.inUse(h)
	return &Hold{lease: h, seat: s}
}

// ClaimID names the claim in the log; holds that followed each other within
// the linger time share it.
func (h *Hold) ClaimID() string { return h.lease.id }

// Context ends before the lease does; its cause is then ErrLost (or ErrClosed
// after Release or Close). Work done under the lock should end with it.
func (h *Hold) Context() context.Context { return h.lease.ctx }

// Written says whether a write was sent under the claim, by this hold or one
// that lingered into it.
func (h *Hold) Written() bool {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return h.lease.last != 0
}

// Check fails with ErrLost when the lock is not held any more.
func (h *Hold) Check() error {
	if h.lease.left() <= 0 {
		h.lease.end(errLost(h.lease.key, "was not renewed before its deadline"))
	}
	return context.Cause(h.lease.ctx)
}

// Write sends one write under the lock. send gets the version that the write
// must carry, and a context that ends with the lock; it may repeat the write
// with that version as often as it likes. above is the version of the row that
// the write replaces, 0 for none. An error that is ErrLost means that the
// write must be taken for not done: a later holder may not have seen it.
func (h *Hold) Write(ctx context.Context, above Millis, send func(ctx context.Context, version Millis) error) error {
	return h.lease.write(ctx, above, send)
}

// Release gives the lock back, or keeps it for a moment for the next Acquire
// of its key when nobody waits. It may be called more than once.
func (h *Hold) Release() {
	h.once.Do(func() { h.seat.vacate(h.lease) })
}

// seat is the place of one key within this process: one hold at a time, and
// the lease that lingers between holds.
type seat struct {
	l     *Locker
	key   string
	taken chan struct{} // capacity 1: full while somebody sits

	// Guarded by the seat being taken:
	idle  *lease
	timer *time.Timer

	// Guarded by l.mu:
	users int    // who sit or wait
	now   *lease // in use, for the error that names the holder
}

// sit takes the seat of key, waiting in line with the others of this process.
func (l *Locker) sit(ctx context.Context, key string, began time.Duration) (*seat, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	s := l.seats[key]
	if s == nil {
		s = &seat{l: l, key: key, taken: make(chan struct{}, 1)}
		l.seats[key] = s
	}
	s.users++
	l.mu.Unlock()
	select {
	case s.taken <- struct{}{}:
	default:
		limit := time.NewTimer(l.opts.Wait)
		defer limit.Stop()
		select {
		case s.taken <- struct{}{}:
		case <-limit.C:
			l.drop(s)
			return nil, &BusyError{Wait{Key: key, Blocker: s.claim(), Waited: l.opts.Clock.Now() - began}}
		case <-ctx.Done():
			l.drop(s)
			return nil, context.Cause(ctx)
		}
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	return s, nil
}

// leave gives the seat up, with nothing lingering in it.
func (l *Locker) leave(s *seat) {
	<-s.taken
	l.drop(s)
}

// drop forgets a seat that nobody uses any more.
func (l *Locker) drop(s *seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.users--
	if s.users == 0 {
		delete(l.seats, s.key)
	}
}

func (s *seat) inUse(h *lease) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.now = h
}

// claim describes the claim that this process itself holds, for an error.
func (s *seat) claim() Claim {
	s.l.mu.Lock()
	h := s.now
	s.l.mu.Unlock()
	if h == nil { // still being claimed
		return Claim{Holder: s.l.opts.Holder}
	}
	return Claim{ID: h.id, Holder: ParseHolder(h.holder)}
}

// vacate ends a hold: the lease lingers when it may, and is released when it may not.
func (s *seat) vacate(h *lease) {
	s.inUse(nil)
	h.mu.Lock()
	linger := s.l.opts.Linger > 0 && !h.tickets && h.ctx.Err() == nil
	h.mu.Unlock()
	if !linger || s.l.isClosed() {
		h.release()
		s.l.leave(s)
		return
	}
	s.idle = h
	// The lingering lease keeps its seat among the users until it is released.
	s.timer = time.AfterFunc(s.l.opts.Linger, func() { s.retire(h) })
	<-s.taken
}

// retire releases a lease that has idled, unless it is in use again.
func (s *seat) retire(h *lease) {
	select {
	case s.taken <- struct{}{}:
	default:
		return
	}
	if s.idle == h {
		s.idle = nil
		h.release()
		s.l.leave(s)
		return
	}
	<-s.taken
}
