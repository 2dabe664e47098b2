package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lease is a claim that was acquired and is kept alive. It outlives the Hold
// that it was acquired for when it lingers.
type lease struct {
	l      *Locker
	key    string
	id     string
	holder string

	ctx    context.Context // ends when the lease does, with the reason as its cause
	cancel context.CancelCauseFunc

	appending sync.Mutex // one row at a time, so that seq follows the order of sending
	writing   sync.Mutex // one write at a time

	mu       sync.Mutex
	rows     uint64        // rows sent, answered or not
	base     Millis        // the version clock read base ...
	baseAt   time.Duration // ... at this time of mine
	last     Millis        // last version sent, 0 for none
	ceiling  Millis        // acknowledged: no version at or above it
	deadline time.Duration // by my clock
	looked   time.Duration // when the newest look was sent
	tickets  bool          // that look saw others wait
	released bool
}

func newLease(c *claimant, look Look, d Decision) (*lease, error) {
	h := &lease{
		l: c.l, key: c.key, id: c.me.ID, holder: c.holder.Marshal(), rows: c.rows,
		base: d.Floor, baseAt: look.Sent, ceiling: d.Ceiling, deadline: c.me.Deadline,
		looked: look.Sent, tickets: d.Tickets,
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.closed {
		return nil, ErrClosed
	}
	c.l.leases[h] = struct{}{}
	c.l.work.Go(h.watch)
	return h, nil
}

// watch renews the lease every third of it and ends it at its deadline.
func (h *lease) watch() {
	third := h.l.opts.Lease / 3
	renewIn := third
	for {
		left := h.left()
		if left <= 0 {
			h.end(errLost(h.key, "was not renewed before its deadline"))
			return
		}
		t := time.NewTimer(min(renewIn, left))
		select {
		case <-h.ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		if h.left() <= 0 {
			continue
		}
		renewIn = third
		if err := h.beat(); err != nil {
			renewIn = third / 4
			h.l.opts.Logger.Debug("lock not renewed; trying again", "key", h.key, "error", err)
		}
	}
}

// beat looks whether the claim still stands, then renews it.
func (h *lease) beat() error {
	left := h.left()
	looking, cancel := context.WithTimeout(h.ctx, left/2) // the renewal matters more
	err := h.look(looking)
	cancel()
	if errors.Is(err, ErrLost) {
		return err
	}
	renewing, cancel := context.WithTimeout(h.ctx, left)
	defer cancel()
	return h.renew(renewing, 0)
}

// look re-anchors the version clock, and sees whether others wait or somebody
// broke or lost the claim.
func (h *lease) look(ctx context.Context) error {
	// The look judges nobody's life, so it needs no memory of earlier ones.
	look, d, err := h.l.look(ctx, h.key, Me{ID: h.id, Deadline: h.deadlineNow()}, Memory{})
	if err != nil {
		return err
	}
	mine, there := claimsOf(look.Rows, h.id)[h.id]
	if !there || mine.Released {
		// Gone means that somebody emptied the table: others may hold by now,
		// who never saw our ceiling.
		err := errLost(h.key, "was broken by somebody else")
		if !there {
			err = errLost(h.key, "vanished from the lock table")
		}
		h.end(err)
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.base, h.baseAt = max(h.versionAt(look.Sent), look.Now), look.Sent
	h.looked = look.Sent
	h.tickets = d.Tickets
	return nil
}

// renew writes the next row of the claim, with a ceiling a lease above the
// version clock and above floor. Only an answer before the old deadline counts.
func (h *lease) renew(ctx context.Context, floor Millis) error {
	h.appending.Lock()
	defer h.appending.Unlock()
	h.mu.Lock()
	if h.released || h.ctx.Err() != nil {
		h.mu.Unlock()
		return context.Cause(h.ctx)
	}
	h.rows++
	sent := h.l.opts.Clock.Now()
	rec := Record{
		ClaimID: h.id, Seq: 2 * h.rows, Lease: h.l.opts.Lease,
		Ceiling: max(h.versionAt(sent), floor, h.last).Add(h.l.opts.Lease), Holder: h.holder,
	}
	h.mu.Unlock()
	if err := h.l.log.Append(ctx, h.key, rec); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.l.opts.Clock.Now() >= h.deadline {
		return errLost(h.key, "was renewed too late")
	}
	h.deadline = h.l.deadline(sent)
	h.ceiling = rec.Ceiling
	return nil
}

// write sends one write under the lease, with a version above every earlier
// one and above the row that it replaces.
func (h *lease) write(ctx context.Context, above Millis, send func(context.Context, Millis) error) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	ctx, cancel := h.bind(ctx)
	defer cancel()
	v, err := h.nextVersion(ctx, above)
	if err != nil {
		return err
	}
	err = send(ctx, v)
	if h.left() <= 0 {
		h.end(errLost(h.key, "ended during a write"))
	}
	if h.ctx.Err() != nil {
		// Done or not, a later holder may not have seen it.
		return errors.Join(context.Cause(h.ctx), err)
	}
	return err
}

func (h *lease) nextVersion(ctx context.Context, above Millis) (Millis, error) {
	v, ok := h.tryVersion(above)
	if !ok && h.ctx.Err() == nil {
		if err := h.renew(ctx, v); err != nil {
			return 0, err
		}
		v, ok = h.tryVersion(above)
	}
	if !ok {
		h.end(errLost(h.key, "ended before the write"))
		return 0, context.Cause(h.ctx)
	}
	return v, nil
}

// tryVersion takes the next version, when the lease allows it; else it tells
// which version the ceiling was too low for.
func (h *lease) tryVersion(above Millis) (Millis, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.l.opts.Clock.Now()
	v := max(h.versionAt(now), h.last+1, above+1)
	if v >= h.ceiling || now >= h.deadline || h.ctx.Err() != nil {
		return v, false
	}
	h.last = v
	return v, true
}

// versionAt reads the version clock; h.mu is held.
func (h *lease) versionAt(now time.Duration) Millis { return h.base.Add(now - h.baseAt) }

func (h *lease) deadlineNow() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

func (h *lease) left() time.Duration { return h.deadlineNow() - h.l.opts.Clock.Now() }

// bind gives a context that ends with ctx or with the lease, whichever is first.
func (h *lease) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// end makes the lease unusable; the claim stands in the log until release or expiry.
func (h *lease) end(why error) { h.cancel(why) }

// reusable says whether a lease that lingered may be used again: it must be
// alive, nobody may wait for it, and its last look must be fresh.
func (h *lease) reusable(ctx context.Context) bool {
	h.mu.Lock()
	stale := h.l.opts.Clock.Now()-h.looked > freshLook
	h.mu.Unlock()
	if stale && h.ctx.Err() == nil {
		if err := h.look(ctx); err != nil {
			return false
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.released && !h.tickets && h.ctx.Err() == nil && h.l.opts.Clock.Now() < h.deadline
}

// release writes the tombstone, which keeps the last version sent: what is
// still under way stays below the next holder. It is bounded in time, and
// nobody's cancellation but the end of the lease matters.
func (h *lease) release() {
	h.end(ErrClosed)
	h.appending.Lock()
	defer h.appending.Unlock()
	h.mu.Lock()
	again := h.released
	h.released = true
	rec := Record{ClaimID: h.id, Seq: 2*h.rows + 1, Released: true, Ceiling: h.last, Holder: h.holder}
	h.mu.Unlock()
	if again {
		return
	}
	h.l.mu.Lock()
	delete(h.l.leases, h)
	h.l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), min(tombstoneTime, h.l.opts.Lease))
	defer cancel()
	for {
		err := h.l.log.Append(ctx, h.key, rec)
		if err == nil {
			return
		}
		if sleep(ctx, oldestPause) != nil {
			h.l.opts.Logger.Warn("lock not given back; it frees itself when its lease ends",
				"key", h.key, "lease", h.l.opts.Lease, "error", err)
			return
		}
	}
}
