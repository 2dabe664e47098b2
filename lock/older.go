package lock

import (
	"context"
	"slices"
	"time"
)

// The older Python plugin keeps its claims in the same table. While there is any
// row of the key it waits, a second at a time, and shows nothing of itself. When
// there is none it inserts a row of its own, sleeps for a second, and has the lock
// if its row's id is the lowest of all rows of the key; else it deletes its row
// and tries again. Any row of ours is lower, released or not, so it stays away
// as long as there is one. Three things follow, which are all that is here:
//
//   - A claim of ours that is over has to be deleted, or the older plugin waits
//     until the row is 300 s old (sweep). Whoever sees the older plugin, or knows
//     that it uses the table, deletes those of others too, who may have ended
//     before they could (sweepOver).
//   - A row of the older plugin that came after one of ours has lost, and need
//     not be waited for. With several of its processes there is always one such
//     row: who waits for none would wait for ever (latecomers).
//   - A claimant of ours that comes within its second takes the lock from it. So
//     there are times in which newcomers that find it there give way (stepAside).

// Forgetter is a Log that the older plugin may use too, and that can delete
// the rows of a claim for its sake.
type Forgetter interface {
	Log
	// Forget deletes all rows of some claims of a key.
	Forget(ctx context.Context, key string, claimIDs ...string) error
	// Shared says whether the older plugin is known to use the log, be there
	// rows of its kind in sight or not.
	Shared() bool
}

const (
	// forgetTime bounds the deletion of claims that are over: a mutation, which
	// may stand in line behind others.
	forgetTime = 30 * time.Second
	// sweepGrace is how long the deletion of a claim is left to its owner, where
	// the older plugin is not in sight.
	sweepGrace = 5 * time.Second
	// forgetPause is how long others' claims are left alone after one that failed.
	forgetPause = 10 * time.Second
	// Of every round of the server's clock newcomers of ours, where the older
	// plugin waits too, get in line in the first part. What is left is enough
	// for those in line to be served, and for an attempt of the older plugin,
	// which takes little more than a second.
	round    = 4000 // ms
	oursPart = 1000 // ms
)

// ourPart says whether newcomers of ours may get in line before the older plugin.
func ourPart(now Millis) bool { return now%round < oursPart }

// sweep deletes a claim that was given back, where the older plugin is about;
// foreign says that a row of its kind was seen.
func (l *Locker) sweep(key, claimID string, foreign bool) {
	if f, ok := l.log.(Forgetter); ok && (foreign || f.Shared()) {
		l.delete(f, key, claimID, claimID+brokenMark)
	}
}

// sweepOver deletes the claims that a look found to be over and in the older
// plugin's way.
func (l *Locker) sweepOver(key string, d Decision) {
	if len(d.Over) == 0 || len(l.sweeping) > 0 {
		return // nothing to do, or what is under way may do it
	}
	if at := l.sweepFailed.Load(); at != 0 && l.opts.Clock.Now()-time.Duration(at) < forgetPause {
		return
	}
	if f, ok := l.log.(Forgetter); ok {
		l.delete(f, key, d.Over...)
	}
}

// over gives the claims that may be deleted: given back, by their owners, with
// no request under way that the tombstone must outlive.
func over(claims map[string]Claim, now Millis) []string {
	var ids []string
	for id, c := range claims {
		if c.Released && !c.Broken && !c.Foreign() && now > c.ExpiresAt {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// delete has claims deleted. Nobody waits for that but Close.
func (l *Locker) delete(f Forgetter, key string, claimIDs ...string) {
	del := func() {
		ctx, cancel := context.WithTimeout(context.Background(), forgetTime)
		defer cancel()
		err := l.sweeping.take(ctx) // one at a time: renewals matter more
		if err == nil {
			defer l.sweeping.give()
			err = f.Forget(ctx, key, claimIDs...)
		}
		if err != nil {
			if l.sweepFailed.Swap(int64(l.opts.Clock.Now())) == 0 { // told once
				l.opts.Logger.Warn("claims that are over cannot be deleted; the older plugin waits until their rows are 300 s old",
					"key", key, "error", err)
			}
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

// tombstoneLease is how long a tombstone must stay: it keeps what is under way
// still, if anything is, from looking like a claim or a later version.
func (l *Locker) tombstoneLease(unsure bool) time.Duration {
	if unsure {
		return l.opts.Lease
	}
	return 0
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
// is gone, or has had its part of a round. After that the newcomer is in line:
// the rows that it sees then have had their time or come after its own.
func (c *claimant) stepAside(ctx context.Context) error {
	c.steppedAside = true
	if c.abandon(ctx) != nil {
		return nil //nolint:nilerr // its row ends with the lease; waiting in its place is as good
	}
	for {
		if err := c.wait(ctx, c.pause(0)); err != nil {
			return err
		}
		look, d, err := c.look(ctx)
		switch {
		case err != nil && !c.slow(ctx, err):
			return err
		case err != nil:
		case !d.Older, ourPart(look.Now):
			return c.rename("")
		case d.Outcome == Blocked:
			c.blocked = Wait{Key: c.key, Blocker: d.Blocker, Now: look.Now}
		}
	}
}
