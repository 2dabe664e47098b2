package lock

import (
	"context"
	"math/rand/v2"
	"time"
)

// claimant is one attempt to get a lock: it announces, looks, and waits as a
// ticket until it holds or gives up.
type claimant struct {
	l      *Locker
	key    string
	me     Me
	mem    Memory
	rows   uint64 // rows sent so far, answered or not
	sent   time.Duration
	holder Holder

	began time.Duration
	told  string // claim id that OnWait was last told of
}

// claim gets a lease on key. began is when the caller began to wait, by our clock.
func (l *Locker) claim(ctx context.Context, key string, began time.Duration) (_ *lease, err error) {
	c := &claimant{l: l, key: key, mem: Memory{}, began: began, holder: l.opts.Holder}
	c.holder.AcquiredAt = time.Now().UTC().Truncate(time.Millisecond)
	c.holder.LeaseMillis = l.opts.Lease.Milliseconds()
	if err := c.rename(); err != nil {
		return nil, err
	}
	c.me.First = true
	defer func() {
		if err != nil {
			c.abandon(ctx)
		}
	}()
	announce := true
	for {
		if announce {
			if err := c.announce(ctx); err != nil {
				return nil, err
			}
			announce = false
		}
		look, d, err := l.look(ctx, key, c.me, c.mem)
		if err != nil {
			return nil, err
		}
		c.me.First = false
		pause := oldestPause
		switch d.Outcome {
		case Acquired:
			return newLease(c, look, d)
		case Broken: // somebody put a tombstone on a claim that waited: begin anew
			if err := c.rename(); err != nil {
				return nil, err
			}
			announce = true
		case Announce:
			announce = true
			if c.me.Ticket { // it is my turn
				continue
			}
		case Blocked:
			if err := c.ticket(ctx); err != nil {
				return nil, err
			}
			// Whoever is next in line must be awake by the time the others
			// before it are served; those far behind need not ask so often.
			pause += min(time.Duration(d.Ahead)*linePause, max(l.opts.Retry-oldestPause, 0))
			pause = pause/2 + rand.N(pause/2)
		}
		if err := c.wait(ctx, look, d, pause); err != nil {
			return nil, err
		}
	}
}

// rename takes a new claim id.
func (c *claimant) rename() error {
	id, err := newClaimID()
	if err != nil {
		return err
	}
	c.me = Me{ID: id}
	c.rows = 0
	return nil
}

// announce writes a claim, the server filling expiry and ceiling.
func (c *claimant) announce(ctx context.Context) error {
	if err := c.append(ctx, false); err != nil {
		return err
	}
	c.me.Deadline = c.l.deadline(c.sent)
	if c.l.opts.Settle > 0 {
		return sleep(ctx, c.l.opts.Settle)
	}
	return nil
}

// ticket turns my row into a ticket, or renews it when a third of its lease is gone.
func (c *claimant) ticket(ctx context.Context) error {
	if c.me.Ticket && c.l.opts.Clock.Now()-c.sent < c.l.opts.Lease/3 {
		return nil
	}
	return c.append(ctx, true)
}

func (c *claimant) append(ctx context.Context, waiting bool) error {
	c.rows++
	c.me.Seq, c.me.Ticket = 2*c.rows, waiting
	c.sent = c.l.opts.Clock.Now()
	rec := Record{
		ClaimID: c.me.ID, Seq: c.me.Seq, Waiting: waiting,
		Lease: c.l.opts.Lease, Ceiling: ServerFills, Holder: c.holder.Marshal(),
	}
	if waiting {
		// Nothing was ever written under a claim that waits: it need not push
		// the next holder's versions a lease ahead of the clock.
		rec.Ceiling = 0
	}
	return c.l.log.Append(ctx, c.key, rec)
}

// wait pauses before the next look, unless the wait limit has passed.
func (c *claimant) wait(ctx context.Context, look Look, d Decision, pause time.Duration) error {
	waited := c.l.opts.Clock.Now() - c.began
	w := Wait{Key: c.key, Blocker: d.Blocker, Now: look.Now, Waited: waited}
	if waited+pause > c.l.opts.Wait {
		if d.Outcome != Blocked {
			return errSlow(waited, c.l.opts.Lease)
		}
		return &BusyError{w}
	}
	if d.Outcome == Blocked && waited >= time.Second && c.told != d.Blocker.ID && c.l.opts.OnWait != nil {
		c.told = d.Blocker.ID
		c.l.opts.OnWait(w)
	}
	if c.l.isClosed() {
		return ErrClosed
	}
	return sleep(ctx, pause)
}

// abandon takes back a claim that will not be held. It is not cancelled with
// the caller: a row left behind would keep others waiting for a lease.
func (c *claimant) abandon(ctx context.Context) {
	if c.rows == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	err := c.l.log.Append(ctx, c.key, Record{
		ClaimID: c.me.ID, Seq: 2*c.rows + 1, Waiting: c.me.Ticket, Released: true, Holder: c.holder.Marshal(),
	})
	if err != nil {
		c.l.opts.Logger.Debug("claim not taken back; it ends with its lease", "key", c.key, "claim", c.me.ID, "error", err)
	}
}
