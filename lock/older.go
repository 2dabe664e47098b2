package lock

import (
	"context"
	"time"
)

// The older Python plugin keeps its claims in the same table. It inserts a row
// of its own, sleeps for a second, and has the lock if its row's id is the
// lowest of all rows of the key; else it deletes its row and tries again. Any
// row of ours is lower, released or not, so it stays away as long as there is
// one. Three things follow, which are all that is here:
//
//   - A claim of ours that is over has to be deleted, or the older plugin waits
//     until the row is 300 s old (sweep).
//   - A row of the older plugin that came after one of ours has lost, and need
//     not be waited for. With several of its processes there is always one such
//     row: who waits for none would wait for ever (latecomers).
//   - It never gets the lock while a claimant of ours stands in line. So a
//     newcomer that finds it there gives way once (stepAside).

// Forgetter is a Log that the older plugin may use too, and that can delete
// the rows of a claim for its sake.
type Forgetter interface {
	Log
	// Forget deletes all rows of a claim.
	Forget(ctx context.Context, key, claimID string) error
	// Shared says whether the older plugin is known to use the log, be there
	// rows of its kind in sight or not.
	Shared() bool
}

const (
	// forgetTime bounds the deletion of a claim that is over.
	forgetTime = 5 * time.Second
	// asideTime is how long a newcomer gives way at most: two attempts of the
	// older plugin, which take little more than a second each.
	asideTime = 2500 * time.Millisecond
)

// sweep deletes a claim that was given back, where the older plugin is about;
// foreign says that a row of its kind was seen. Nobody waits for that but Close.
func (l *Locker) sweep(key, claimID string, foreign bool) {
	f, ok := l.log.(Forgetter)
	if !ok || !foreign && !f.Shared() {
		return
	}
	del := func() {
		ctx, cancel := context.WithTimeout(context.Background(), forgetTime)
		defer cancel()
		err := l.sweeping.take(ctx) // one at a time: renewals matter more
		if err == nil {
			defer l.sweeping.give()
			err = f.Forget(ctx, key, claimID)
		}
		if err != nil {
			l.sweepFailed.Do(func() {
				l.opts.Logger.Warn("a claim that is over cannot be deleted; the older plugin waits until its rows are 300 s old",
					"key", key, "claim", claimID, "error", err)
			})
		}
	}
	l.mu.Lock()
	if l.closed { // Close waits for its caller, or does not know of it
		l.mu.Unlock()
		del()
		return
	}
	l.work.Go(del)
	l.mu.Unlock()
}

// latecomers gives those claims of the older plugin that were stored after a
// row of mine, by no clock: the look before this one showed my row, and did not
// show theirs. They look a second after they are stored, find mine, and go.
func (m Memory) latecomers(claims map[string]Claim, me string) map[string]bool {
	_, stood := m[me]
	_, stands := claims[me]
	if !stood || !stands {
		return nil
	}
	late := map[string]bool{}
	for id, c := range claims {
		if s, ok := m[id]; c.Foreign() && (!ok || s.late || s.lockedAt != c.LockedAt) {
			late[id] = true // a new row, or one that was deleted and stored again
		}
	}
	return late
}

// stepAside takes a newcomer's claim out of the older plugin's way until that
// has had the lock, or the time for it. After that the newcomer is in line: the
// rows that it sees then have had their time or come after its own.
func (c *claimant) stepAside(ctx context.Context) error {
	c.steppedAside = true
	if err := c.abandon(ctx); err != nil {
		return nil // its row ends with the lease; waiting in its place is as good
	}
	for until := c.l.opts.Clock.Now() + asideTime; c.l.opts.Clock.Now() < until; {
		if err := c.wait(ctx, c.pause(0)); err != nil {
			return err
		}
		look, d, err := c.look(ctx)
		switch {
		case err != nil && !c.slow(ctx, err):
			return err
		case err != nil:
		case !d.Older:
			return c.rename("")
		case d.Outcome == Blocked:
			c.blocked = Wait{Key: c.key, Blocker: d.Blocker, Now: look.Now}
		}
	}
	return c.rename("")
}
