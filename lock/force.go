package lock

import "context"

// brokenMark after a claim's id makes the id of its mark: a tombstone with a
// key of its own, so that no later row of the claim outruns it and no merge
// takes one for the other.
const brokenMark = "/broken"

// attemptBits are the low bits of seq, which count the rows of one attempt.
// Each announcement after the first begins a new attempt in the high bits: a
// mark is about the attempt that it was made for. One that is late must not
// hit a claim that was dead then, but waited and announced again since.
const attemptBits = 32

func attempt(seq uint64) uint64 { return seq >> attemptBits }

func nextAttempt(seq uint64) uint64 { return (attempt(seq) + 1) << attemptBits }

// Tombstone gives the row by which somebody else than its owner ends a claim:
// the hold, if it is one, or else this attempt to get it, whatever the owner
// does later. The owner's next look, at most a third of its lease later, shows
// it, and its hold ends with ErrLost; what it may still write stays below the
// versions of later holds.
func (c Claim) Tombstone() Record {
	return Record{ClaimID: c.ID + brokenMark, Seq: c.Seq, Released: true, Ceiling: c.Ceiling}
}

// Break appends the Tombstone of somebody's claim. by says who did it, for the
// error that the claim's owner gets.
func Break(ctx context.Context, log Log, key string, c Claim, by Holder) error {
	row := c.Tombstone()
	row.Holder = by.Marshal()
	return log.Append(ctx, key, row)
}

// Live says whether a claim counts at the moment of the server's clock, as
// far as one look can tell.
func (r Rules) Live(c Claim, now Millis) bool { return !c.Released && !r.expired(c, now) }
