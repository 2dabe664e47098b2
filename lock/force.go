package lock

import "context"

// brokenMark after a claim's id makes the id of its mark: a tombstone with a
// key of its own, so that no later row of the claim outruns it and no merge
// takes one for the other.
const brokenMark = "/broken"

// Tombstone gives the row by which somebody else than its owner ends a claim
// for good, whatever the owner does later. The owner's next look, at most a
// third of its lease later, shows it, and its hold ends with ErrLost; what it
// may still write stays below the versions of later holds.
func (c Claim) Tombstone() Record {
	return Record{ClaimID: c.ID + brokenMark, Seq: 1, Released: true, Ceiling: c.Ceiling}
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
