package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chstate/chstate/internal/lockrules"
)

// claimant is one attempt to get a lock: it announces, looks, and waits as a
// ticket until it holds or gives up.
type claimant struct {
	l      *Locker
	seat   *seat
	key    string
	me     Me
	mem    Memory
	sent   time.Duration
	holder Holder

	began   time.Duration
	told    string // claim id that OnWait was last told of
	blocked Wait   // what the last look showed to be in the way, if anything
	late    error  // the last request that was not answered within a lease

	foreign      bool // a look showed a row of the older plugin
	unsure       bool // a row was sent that may be under way still
	steppedAside bool
}

// errLate is the cause that ends a request of a claimant after a lease: by
// then its answer is worth nothing.
var errLate = errors.New("no answer within a lease")

// claim gets a lease on the key of a seat, for who sits there. began is when the
// caller began to wait, by our clock.
func (l *Locker) claim(ctx context.Context, s *seat, began time.Duration) (_ *lease, err error) {
	c := &claimant{l: l, seat: s, key: s.key, mem: Memory{}, began: began, holder: l.opts.Holder}
	c.holder.AcquiredAt = time.Now().UTC().Truncate(time.Millisecond)
	c.holder.LeaseMillis = l.opts.Lease.Milliseconds()
	if err := c.rename(""); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = c.abandon(ctx)
		}
	}()
	announce := true
	for {
		if announce {
			if err := c.announce(ctx); err != nil && !c.slow(ctx, err) {
				return nil, err
			}
		}
		newcomer := c.me.First
		look, d, err := c.look(ctx)
		if err != nil {
			if !c.slow(ctx, err) {
				return nil, err
			}
			d = Decision{Outcome: Announce} // for all that is known
		} else {
			c.me.First = false
		}
		announce = d.Outcome == Announce
		if err == nil && d.Outcome != Blocked {
			c.blocked = Wait{}
		}
		pause := oldestPause
		switch d.Outcome {
		case Acquired:
			if err := c.settle(ctx, d.Others); err != nil {
				return nil, err
			}
			if l.opts.Settle == 0 || l.opts.Clock.Now() < c.me.Deadline {
				return newLease(c, look, d)
			}
			announce = true // the settling took what was left of the lease
		case TakeOver:
			err := c.takeOver(ctx, d.Dead)
			if err == nil {
				continue
			}
			if !c.slow(ctx, err) {
				return nil, err
			}
		case Broken: // while it waited: begin anew
			if err := c.rename(""); err != nil {
				return nil, err
			}
			announce = true
		case Announce:
			if c.me.Ticket && err == nil { // it is my turn
				continue
			}
		case Blocked:
			pause = c.pause(d.Ahead)
			c.blocked = Wait{Key: c.key, Blocker: d.Blocker, Now: look.Now}
			if !c.lastsFor(pause) {
				break
			}
			if newcomer && d.Older && !ourPart(look.Now) && !c.steppedAside {
				if err := c.stepAside(ctx); err != nil {
					return nil, err
				}
				announce = true
				continue
			}
			if newcomer && d.Youngest > c.me.ID && !l.rules.Without(lockrules.StepBack) {
				if err := c.stepBack(ctx, d.Youngest); err != nil {
					return nil, err
				}
			}
			if err := c.ticket(ctx); err != nil && !c.slow(ctx, err) {
				return nil, err
			}
		}
		if err := c.wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// rename takes a new claim id, one that sorts after another unless that is "".
func (c *claimant) rename(after string) error {
	id, err := c.l.newClaimID(after)
	if err != nil {
		return err
	}
	c.me, c.unsure = Me{ID: id, First: true, Seq: 2 * c.l.rules.RowsBefore()}, false
	return nil
}

// stepBack gives a newcomer whose clock is behind an id younger than all that
// were there before it (who announces just now may have waited for long):
// else it would overtake them, again and again.
func (c *claimant) stepBack(ctx context.Context, youngest string) error {
	if c.abandon(ctx) != nil {
		return nil //nolint:nilerr // its ticket outranks that row, should it still come
	}
	err := c.rename(youngest)
	c.me.First = false
	return err
}

// announce writes a claim, the server filling expiry and ceiling.
func (c *claimant) announce(ctx context.Context) error {
	err := c.append(ctx, false, ServerFills)
	c.me.Deadline = c.l.deadline(c.sent)
	if err != nil {
		return err
	}
	return c.settle(ctx, true)
}

// settle gives lagging replicas the time that strategy "settle" rests on: for
// my claim to be seen, and for what earlier holders wrote.
func (c *claimant) settle(ctx context.Context, others bool) error {
	if c.l.opts.Settle == 0 || !others {
		return nil
	}
	return sleep(ctx, c.l.opts.Settle)
}

// ticket turns my row into a ticket, or renews it when a third of its lease is
// gone. A ticket writes nothing, so its ceiling is 0.
func (c *claimant) ticket(ctx context.Context) error {
	if c.me.Ticket && c.l.opts.Clock.Now()-c.sent < c.l.opts.Lease/3 {
		return nil
	}
	return c.append(ctx, true, 0)
}

func (c *claimant) append(ctx context.Context, waiting bool, ceiling Millis) error {
	if waiting || c.me.Seq == 0 {
		c.me.Seq += 2
	} else {
		c.me.Seq = nextAttempt(c.me.Seq)
	}
	c.me.Ticket = waiting
	c.sent = c.l.opts.Clock.Now()
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	err := c.l.log.Append(ctx, c.key, Record{
		ClaimID: c.me.ID, Seq: c.me.Seq, Waiting: waiting,
		Lease: c.l.opts.Lease, Ceiling: ceiling, Holder: c.holder.Marshal(),
	})
	if c.l.rules.Without(lockrules.AnchorSent) {
		c.sent = c.l.opts.Clock.Now()
	}
	c.unsure = c.unsure || err != nil
	return late(ctx, err)
}

func (c *claimant) look(ctx context.Context) (Look, Decision, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	look, d, err := c.l.look(ctx, c.key, c.me, c.mem)
	c.foreign = c.foreign || d.Foreign
	return look, d, late(ctx, err)
}

// takeOver breaks claims that died without a tombstone. Their holders may not
// know it (the server's clock may have jumped, not they have stopped); one who
// renews after this sees the mark, and what one renewed before it, my next
// look sees.
func (c *claimant) takeOver(ctx context.Context, dead []Claim) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	for _, d := range dead {
		if err := Break(ctx, c.l.log, c.key, d, c.holder); err != nil {
			return late(ctx, err)
		}
	}
	return nil
}

func (c *claimant) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.l.opts.Lease, errLate)
}

// late marks an error that came because a bounded context ended by its own bound.
func late(bounded context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(bounded), errLate) {
		return fmt.Errorf("%w: %w", errLate, err)
	}
	return err
}

// slow says whether an error is only an answer that came too late: that is
// tried again until the wait limit.
func (c *claimant) slow(ctx context.Context, err error) bool {
	if !errors.Is(err, errLate) || ctx.Err() != nil {
		return false
	}
	c.late = err
	return true
}

// pause is the time between two looks. Whoever is next in line must be awake
// by the time that those before it are served; those far behind need not ask
// so often. A ticket is renewed in time in any case.
func (c *claimant) pause(ahead int) time.Duration {
	p := oldestPause + min(time.Duration(ahead)*linePause, max(c.l.opts.Retry-oldestPause, 0))
	p = min(p, c.l.opts.Lease/3)
	return p/2 + time.Duration(c.l.rand(int64(p/2)))
}

// lastsFor says whether the wait limit leaves room for another pause.
func (c *claimant) lastsFor(pause time.Duration) bool {
	return c.waited()+pause <= c.l.opts.Wait
}

func (c *claimant) waited() time.Duration { return c.l.opts.Clock.Now() - c.began }

// wait pauses before the next look, unless the wait limit has passed.
func (c *claimant) wait(ctx context.Context, pause time.Duration) error {
	w := c.blocked
	w.Waited = c.waited()
	inTheWay := w.Blocker.ID != ""
	c.seat.waitsFor(w)
	if !c.lastsFor(pause) {
		if !inTheWay {
			return errSlow(w.Waited, c.l.opts.Lease, c.late)
		}
		return &BusyError{w}
	}
	if inTheWay && w.Waited >= time.Second && c.told != w.Blocker.ID && c.l.opts.OnWait != nil {
		c.told = w.Blocker.ID
		c.l.opts.OnWait(w)
	}
	return sleep(ctx, pause)
}

// abandon takes back a claim that will not be held. It is not cancelled with
// the caller: a row left behind would keep others waiting for a lease.
func (c *claimant) abandon(ctx context.Context) error {
	if c.me.Seq == 0 { // nothing was sent, or it is taken back already
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	err := c.l.log.Append(ctx, c.key, Record{
		ClaimID: c.me.ID, Seq: c.me.Seq + 1, Waiting: c.me.Ticket, Released: true, Lease: c.l.tombstoneLease(c.unsure), Holder: c.holder.Marshal(),
	})
	if err != nil {
		c.l.opts.Logger.Debug("claim not taken back; it ends with its lease", "key", c.key, "claim", c.me.ID, "error", err)
		return err
	}
	c.me.Seq = 0 // a second tombstone could come after the sweep, and stay
	if !c.unsure {
		c.l.sweep(c.key, c.me.ID, c.foreign)
	}
	return nil
}
