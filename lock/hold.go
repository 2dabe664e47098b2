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

	ctx context.Context // ends with the lease, or at Release
	end context.CancelCauseFunc
}

func newHold(h *lease, s *seat) *Hold {
	s.inUse(h)
	ctx, end := context.WithCancelCause(h.ctx)
	return &Hold{lease: h, seat: s, ctx: ctx, end: end}
}

// ClaimID names the claim in the log; holds that followed each other within
// the linger time share it.
func (h *Hold) ClaimID() string { return h.lease.id }

// Context ends when the lock does; its cause is then ErrLost (or ErrClosed
// after Release or Close). Work done under the lock should end with it.
func (h *Hold) Context() context.Context { return h.ctx }

// Written says whether a write was sent under the claim, by this hold or one
// that lingered into it.
func (h *Hold) Written() bool {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return h.lease.last != 0
}

// Keep keeps a value of the caller's with the claim, for this hold and those
// that follow it within the linger time. It is gone with the claim.
func (h *Hold) Keep(v any) {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	h.lease.kept = v
}

// Kept gives what was last kept with the claim, nil when nothing was.
func (h *Hold) Kept() any {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return h.lease.kept
}

// Check fails with ErrLost when the lock is not held any more.
func (h *Hold) Check() error {
	if h.lease.left() <= 0 {
		h.lease.end(errLost(h.lease.key, "was not renewed before its deadline"))
	}
	return context.Cause(h.ctx)
}

// Write sends one write under the lock. send gets the version that the write
// must carry, and a context that ends with the lock; it may repeat the write
// with that version as often as it likes. above is the version of the row that
// the write replaces, 0 for none. An error that is ErrLost means that the
// write must be taken for not done: a later holder may not have seen it.
func (h *Hold) Write(ctx context.Context, above Millis, send func(ctx context.Context, version Millis) error) error {
	return h.lease.write(ctx, h.ctx, above, send)
}

// Release gives the lock back, or keeps it for a moment for the next Acquire
// of its key when nobody waits. It may be called more than once.
func (h *Hold) Release() {
	h.once.Do(func() {
		h.end(ErrClosed)
		h.seat.vacate(h.lease)
	})
}

// seat is the place of one key within this process: one hold at a time, and
// the lease that lingers between holds.
type seat struct {
	l     *Locker
	key   string
	taken turn // full while somebody sits

	// Guarded by the seat being taken:
	idle  *lease
	stand context.CancelFunc // stops idle's lingering

	// Guarded by l.mu:
	users   int    // who sit or wait
	now     *lease // in use, for the error that names the holder
	blocked Wait   // what who sits, and has no lease yet, waits for
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
		s = &seat{l: l, key: key, taken: newTurn()}
		l.seats[key] = s
	}
	s.users++
	l.mu.Unlock()
	select {
	case s.taken <- struct{}{}:
	default:
		if err := l.queue(ctx, s, began); err != nil {
			l.drop(s)
			return nil, err
		}
	}
	if s.stand != nil {
		s.stand()
		s.stand = nil
	}
	return s, nil
}

// queue waits for a seat that is taken.
func (l *Locker) queue(ctx context.Context, s *seat, began time.Duration) error {
	limit := time.NewTimer(l.opts.Wait)
	defer limit.Stop()
	select {
	case s.taken <- struct{}{}:
		return nil
	case <-limit.C:
		return s.busy(l.opts.Clock.Now() - began)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.closing.Done():
		return ErrClosed
	}
}

// leave gives the seat up, with nothing lingering in it.
func (l *Locker) leave(s *seat) {
	s.taken.give()
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

// busy is the error for who waited in vain for a seat: the claim that this
// process itself holds there, or what is in the way of the one who sits.
func (s *seat) busy(waited time.Duration) error {
	s.l.mu.Lock()
	h, w := s.now, s.blocked
	s.l.mu.Unlock()
	w.Key, w.Waited = s.key, waited
	if h != nil {
		w.Blocker, w.Now = Claim{ID: h.id, Holder: ParseHolder(h.holder)}, 0
	}
	if w.Blocker.ID == "" { // it is being claimed, and nobody is in the way
		return errSlow(waited, s.l.opts.Lease, nil)
	}
	return &BusyError{w}
}

// waitsFor notes what is in the way of the one who sits; the zero Wait for nothing.
func (s *seat) waitsFor(w Wait) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.blocked = w
}

// vacate ends a hold: the lease lingers when it may, and is released when it may not.
func (s *seat) vacate(h *lease) {
	s.inUse(nil)
	if s.l.opts.Linger <= 0 || h.othersWait() || h.ctx.Err() != nil || !s.linger(h) {
		h.release()
		s.l.leave(s)
		return
	}
	s.taken.give()
}

// linger keeps a lease for the next use of its seat, unless the locker is
// closed. The lease stays among the seat's users until it is retired.
func (s *seat) linger(h *lease) bool {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.l.closed {
		return false
	}
	ctx, stop := context.WithCancel(h.ctx)
	s.idle, s.stand = h, stop
	s.l.work.Go(func() {
		defer stop()
		if h.idle(ctx) {
			s.retire(h)
		}
	})
	return true
}

// retire releases a lease that has idled, unless it is in use again.
func (s *seat) retire(h *lease) {
	select {
	case s.taken <- struct{}{}:
	default:
		return
	}
	if s.idle != h {
		s.taken.give()
		return
	}
	s.idle, s.stand = nil, nil
	h.release()
	s.l.leave(s)
}

// idle waits until a lingering lease should be given back: its time is over,
// it ended, or somebody waits for it. It is false when ctx ended first, for
// the lease is in use again.
func (h *lease) idle(ctx context.Context) bool {
	over, cancel := context.WithTimeout(ctx, h.l.opts.Linger)
	defer cancel()
	for pause := lingerLook - h.sinceLook(); sleep(over, pause) == nil; pause = lingerLook {
		if h.look(over) == nil && h.othersWait() {
			return true
		}
	}
	return ctx.Err() == nil || h.ctx.Err() != nil
}
