package lock

import (
	"slices"
	"strings"

	"github.com/chstate/chstate/internal/lockrules"
)

// claimsOf takes the row with the greatest seq of each claim. Rows of one seq
// are one row that was sent again; where the server filled them at different
// times, others' are read as the longest-lived of them, and mine as the least:
// I must not count on a row that a merge may have dropped. A mark makes its
// claim released, also one whose rows are gone, unless the claim announced
// again after what the mark is about.
func (r Rules) claimsOf(rows []Row, mine string) map[string]Claim {
	claims := make(map[string]Claim, len(rows))
	for _, row := range rows {
		if strings.HasSuffix(row.ClaimID, brokenMark) {
			continue
		}
		c, ok := claims[row.ClaimID]
		switch {
		case !ok || r.newer(row, c):
			claims[row.ClaimID] = Claim{
				ID: row.ClaimID, Seq: row.Seq, Waiting: row.Waiting, Released: row.Released,
				LockedAt: row.LockedAt, ExpiresAt: row.ExpiresAt, Ceiling: row.Ceiling,
				holder: row.Holder,
			}
			continue
		case row.Seq != c.Seq:
			continue
		case row.ClaimID == mine:
			c.ExpiresAt = min(c.ExpiresAt, row.ExpiresAt)
			c.Ceiling = min(c.Ceiling, row.Ceiling)
		default:
			c.ExpiresAt = max(c.ExpiresAt, row.ExpiresAt)
			c.Ceiling = max(c.Ceiling, row.Ceiling)
		}
		c.LockedAt = max(c.LockedAt, row.LockedAt)
		c.Released = c.Released || row.Released
		c.Waiting = c.Waiting && row.Waiting
		claims[row.ClaimID] = c
	}
	for _, row := range rows {
		id, ok := strings.CutSuffix(row.ClaimID, brokenMark)
		if !ok {
			continue
		}
		c := claims[id]
		if attempt(row.Seq) < attempt(c.Seq) {
			continue
		}
		c.ID, c.Released, c.Broken = id, true, true
		c.Ceiling = max(c.Ceiling, row.Ceiling)
		c.LockedAt = max(c.LockedAt, row.LockedAt)
		c.brokenBy = row.Holder
		claims[id] = c
	}
	return claims
}

// parsed fills in who holds and who broke: only people need it, and a look has
// many claims.
func (c Claim) parsed() Claim {
	c.Holder = ParseHolder(c.holder)
	if c.Broken {
		c.BrokenBy = ParseHolder(c.brokenBy)
	}
	return c
}

// newer says whether a row comes after those that c was read from.
func (r Rules) newer(row Row, c Claim) bool {
	switch {
	case r.off&lockrules.SeqOrder != 0:
		return row.LockedAt > c.LockedAt
	case r.off&lockrules.ArrivalOrder != 0:
		return true
	}
	return row.Seq > c.Seq
}

// Claims gives what the rows of a snapshot say, one claim per claim id, oldest
// first, for people.
func (s Snapshot) Claims() []Claim {
	claims := Rules{}.claimsOf(s.Rows, "")
	out := make([]Claim, 0, len(claims))
	for _, c := range claims {
		out = append(out, c.parsed())
	}
	slices.SortFunc(out, byID)
	return out
}
