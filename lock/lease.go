package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chstate/chstate/internal/lockrules"
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

	appending turn // one row at a time, so that seq follows the order of sending
	writing   turn // one write at a time

	// The clock is read before mu is locked: nothing waits under it.
	mu       sync.Mutex
	seq      uint64        // of the last row sent, answered or not
	base     Millis        // the version clock read base ...
	baseAt   time.Duration // ... at this time of mine
	last     Millis        // last version sent, 0 for none
	ceiling  Millis        // no version at or above it
	raised   Millis        // as ceiling, acknowledged, but not looked at yet
	asked    Millis        // the greatest ceiling sent, answered or not
	deadline time.Duration // by my clock
	renewed  time.Duration // when the row was sent that deadline comes from
	looked   time.Duration // when the newest look was sent
	tickets  bool          // that look saw others wait
	foreign  bool          // some look saw the older plugin
	unsure   bool          // some request may be under way still
	released bool
	kept     any // the caller's, see Hold.Keep
}

func newLease(c *claimant, look Look, d Decision) (*lease, error) {
	h := &lease{
		l: c.l, key: c.key, id: c.me.ID, holder: c.holder.Marshal(), seq: c.me.Seq,
		appending: newTurn(), writing: newTurn(),
		base: d.Floor, baseAt: look.Sent, ceiling: d.Mine.Ceiling, asked: d.Mine.Ceiling,
		deadline: c.me.Deadline, renewed: c.sent, looked: look.Sent, tickets: d.Tickets || d.Older,
		foreign: c.foreign, unsure: c.unsure,
	}
	if c.l.rules.Without(lockrules.AnchorSent) {
		h.baseAt = look.Received
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.closed {
		return nil, ErrClosed
	}
	c.l.leases[h] = struct{}{}
	c.l.work.Go(h.watch)
	c.l.rules.Emit(lockrules.Event{Kind: lockrules.Began, ID: h.id, Rows: look.Rows, Deadline: h.deadline})
	return h, nil
}

// watch renews the lease every third of it and ends it at its deadline.
func (h *lease) watch() {
	third := h.l.opts.Lease / 3
	h.mu.Lock()
	next := h.renewed + third
	h.mu.Unlock()
	for {
		now := h.l.opts.Clock.Now()
		left := h.deadlineNow() - now
		switch {
		case left <= 0:
			h.end(errLost(h.key, "was not renewed before its deadline"))
			return
		case h.ctx.Err() != nil:
			return
		case now < next:
			// Timers stand still while the machine is suspended, Clock does not:
			// so wake often enough to see it soon after.
			if sleep(h.ctx, max(time.Millisecond, min(next-now, left, watchPause))) != nil {
				return
			}
			continue
		}
		if err := h.beat(left); err != nil {
			next = h.l.opts.Clock.Now() + third/4
			h.l.opts.Logger.Debug("lock not renewed; trying again", "key", h.key, "error", err)
			continue
		}
		h.mu.Lock()
		next = h.renewed + third
		h.mu.Unlock()
	}
}

// beat looks whether the claim still stands, and renews it. The look comes
// first: behind a renewal it would not see that the claim's rows had vanished.
// It makes the ceiling of the renewal before this one usable, which reaches a
// lease beyond that one: two more beats. Who needs more than that raises it,
// see nextVersion.
func (h *lease) beat(left time.Duration) error {
	// The renewal matters more: where requests take seconds it does not wait
	// for a look.
	looking, cancel := context.WithTimeout(h.ctx, min(left/2, h.l.opts.Lease/6))
	err := h.look(looking)
	cancel()
	if errors.Is(err, ErrLost) {
		return err
	}
	renewing, cancel := context.WithTimeout(h.ctx, left)
	defer cancel()
	return h.renew(renewing, 0)
}

// look re-anchors the version clock, sees whether others wait or somebody
// broke or lost the claim, and makes usable the ceiling that was acknowledged
// before: who took this claim for dead and did not see that ceiling broke the
// claim before it was stored, and this look shows it.
func (h *lease) look(ctx context.Context) error {
	h.mu.Lock()
	raised, deadline := h.raised, h.deadline
	h.mu.Unlock()
	// The look judges nobody's life, so it needs no memory of earlier ones.
	look, d, err := h.l.look(ctx, h.key, Me{ID: h.id, Deadline: deadline}, Memory{})
	if err != nil {
		return err
	}
	switch {
	case !d.There:
		// Somebody emptied the table: others may hold by now, who never saw our ceiling.
		err = errLost(h.key, "vanished from the lock table")
	case d.Mine.Released:
		err = errBroken(h.key, d.Mine)
	}
	if err != nil {
		h.end(err)
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if look.Sent >= h.looked {
		h.base, h.baseAt = max(h.versionAt(look.Sent), look.Now), look.Sent
		if h.l.rules.Without(lockrules.AnchorSent) {
			h.baseAt = look.Received
		}
		h.looked = look.Sent
		h.tickets = d.Tickets || d.Older // which tries again and again
	}
	h.foreign = h.foreign || d.Foreign
	h.ceiling = max(h.ceiling, raised)
	return nil
}

// renew writes the next row of the claim, with a ceiling a lease above the
// version clock and above floor. Only an answer before the old deadline counts.
func (h *lease) renew(ctx context.Context, floor Millis) error {
	if err := h.appending.take(ctx); err != nil {
		return err
	}
	defer h.appending.give()
	sent := h.l.opts.Clock.Now()
	h.mu.Lock()
	if h.released || h.ctx.Err() != nil {
		h.mu.Unlock()
		return context.Cause(h.ctx)
	}
	h.seq += 2
	// Ceilings never fall: a merge keeps the last row alone.
	h.asked = max(h.asked, max(h.versionAt(sent), floor, h.last).Add(h.l.opts.Lease))
	rec := Record{ClaimID: h.id, Seq: h.seq, Lease: h.l.opts.Lease, Ceiling: h.asked, Holder: h.holder}
	h.mu.Unlock()
	if err := h.l.log.Append(ctx, h.key, rec); err != nil {
		h.notSure()
		return err
	}
	now := h.l.opts.Clock.Now()
	if h.l.rules.Without(lockrules.AnchorSent) {
		sent = now
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now >= h.deadline && !h.l.rules.Without(lockrules.Deadline) {
		err := errLost(h.key, "was renewed too late")
		h.end(err)
		return err
	}
	h.deadline, h.renewed = h.l.deadline(sent), sent
	h.raised = rec.Ceiling
	if h.l.rules.Without(lockrules.LookAfterRenewal) {
		h.ceiling = rec.Ceiling
	}
	h.l.rules.Emit(lockrules.Event{Kind: lockrules.Extended, ID: h.id, Deadline: h.deadline})
	return nil
}

func (h *lease) deadlineNow() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

// notSure notes that a request may be under way still: the tombstone must outlive it.
func (h *lease) notSure() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsure = true
}

// left is how long the lease may still be counted on.
func (h *lease) left() time.Duration { return h.deadlineNow() - h.l.opts.Clock.Now() }

// end makes the lease unusable; the claim stands in the log until release or expiry.
func (h *lease) end(why error) { h.cancel(why) }

// reusable says whether a lease that lingered may be used again: it must be
// alive, nobody may wait for it, and its last look must be fresh.
func (h *lease) reusable(ctx context.Context) bool {
	if h.sinceLook() > freshLook && h.ctx.Err() == nil {
		ctx, cancel := h.bind(ctx, h.ctx)
		err := h.look(ctx)
		cancel()
		if err != nil {
			return false
		}
	}
	left := h.left()
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.released && !h.tickets && h.ctx.Err() == nil && left > 0
}

func (h *lease) sinceLook() time.Duration {
	now := h.l.opts.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	return now - h.looked
}

func (h *lease) othersWait() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tickets
}

// release writes the tombstone, which keeps the last version sent: what is
// still under way stays below the next holder. It is bounded in time, and
// nobody's cancellation but the end of the lease matters.
func (h *lease) release() {
	h.end(ErrClosed)
	_ = h.appending.take(context.Background()) // a renewal under way ends with h.ctx
	defer h.appending.give()
	h.mu.Lock()
	again := h.released
	h.released = true
	unsure, foreign := h.unsure || len(h.writing) > 0, h.foreign
	rec := Record{ClaimID: h.id, Seq: h.seq + 1, Released: true, Lease: h.l.tombstoneLease(unsure), Ceiling: h.last, Holder: h.holder}
	if h.l.rules.Without(lockrules.TombstoneCeiling) {
		rec.Ceiling = 0
	}
	h.mu.Unlock()
	if again {
		return
	}
	h.l.rules.Emit(lockrules.Event{Kind: lockrules.Ended, ID: h.id})
	h.l.giving.Add(1)
	h.l.forget(h)
	ctx, cancel := context.WithTimeout(context.Background(), min(tombstoneTime, h.l.opts.Lease))
	defer cancel()
	for {
		err := h.l.log.Append(ctx, h.key, rec)
		if err == nil {
			h.l.giving.Add(-1)
			if !unsure {
				h.l.sweep(h.key, h.id, foreign)
			}
			return
		}
		unsure = true
		rec.Lease = h.l.tombstoneLease(unsure)
		if sleep(ctx, oldestPause) != nil {
			h.l.opts.Logger.Warn("lock not given back; it frees itself when its lease ends",
				"key", h.key, "lease", h.l.opts.Lease, "error", err)
			return
		}
	}
}

// turn lets one goroutine pass at a time, as a mutex that can be waited for
// with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	if ctx.Err() != nil { // or it would be a matter of chance
		return context.Cause(ctx)
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }
