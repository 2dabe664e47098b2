package clickhouse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chstate/chstate/lock"
)

// cell is the log of one key as Keeper stores it: all of it in one node that
// is only ever replaced as a whole, if nobody else replaced it meanwhile.
// That makes a row appended late or twice impossible, so a claim needs one row,
// and one that is over none at all, as long as its ceiling is kept.
type cell struct {
	// Floor is one ceiling for all the claims that were forgotten: the greatest.
	Floor lock.Millis `json:"floor"`
	Rows  []cellRow   `json:"rows"`
}

type cellRow struct {
	Claim    string      `json:"id"`
	Seq      uint64      `json:"n"`
	Waiting  bool        `json:"w,omitempty"`
	Released bool        `json:"r,omitempty"`
	LockedAt lock.Millis `json:"l"`
	Expires  lock.Millis `json:"e"`
	Ceiling  lock.Millis `json:"c"`
	Holder   string      `json:"h,omitempty"`
}

const (
	// keepFor is how long what is over is kept, in milliseconds beyond its
	// expiry: as long as the ordinary table keeps rows. A holder whose claim
	// somebody broke learns of it meanwhile, and people who ask see who it was.
	keepFor = 300_000
	// keepTombstones bounds what a busy key leaves: a node is small.
	keepTombstones = 32
)

func parseCell(text string) (cell, error) {
	var c cell
	if text == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("the lock's entry in Keeper cannot be read: %w", err)
	}
	return c, nil
}

func (c cell) text() (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}

// has says whether a record was appended: it is there, or what came after it
// is, or it was a tombstone of which only the ceiling is left.
func (c cell) has(rec lock.Record) bool {
	if i := c.find(rec.ClaimID); i >= 0 {
		return c.Rows[i].Seq >= rec.Seq
	}
	return cellRow{Claim: rec.ClaimID, Released: rec.Released}.tombstone() && c.Floor >= rec.Ceiling && c.Floor > 0
}

func (c cell) find(claim string) int {
	return slices.IndexFunc(c.Rows, func(r cellRow) bool { return r.Claim == claim })
}

// with gives the cell with a record appended at the server's time now, and
// without what nobody needs any more.
func (c cell) with(rec lock.Record, now lock.Millis) cell {
	row := cellRow{
		Claim: rec.ClaimID, Seq: rec.Seq, Waiting: rec.Waiting, Released: rec.Released,
		LockedAt: now, Expires: now.Add(rec.Lease), Ceiling: rec.Ceiling, Holder: rec.Holder,
	}
	if rec.Ceiling == lock.ServerFills {
		row.Ceiling = row.Expires
	}
	out := cell{Floor: c.Floor, Rows: slices.Clone(c.Rows)}
	if i := out.find(rec.ClaimID); i >= 0 {
		out.Rows[i] = row
	} else {
		out.Rows = append(out.Rows, row)
	}
	// The newest last, so that the oldest tombstones are the ones to go.
	slices.SortStableFunc(out.Rows, func(a, b cellRow) int { return cmp.Compare(a.LockedAt, b.LockedAt) })
	tombstones := 0
	for _, r := range out.Rows {
		if r.tombstone() {
			tombstones++
		}
	}
	out.Rows = slices.DeleteFunc(out.Rows, func(r cellRow) bool {
		gone := now > max(r.LockedAt, r.Expires)+keepFor
		if r.tombstone() && tombstones > keepTombstones {
			gone = true
			tombstones--
		}
		if gone {
			out.Floor = max(out.Floor, r.Ceiling)
		}
		return gone
	})
	return out
}

// tombstone says whether the row is a claimant's own farewell. It has told all
// with its ceiling. A mark, which somebody else set, is news to the claim's owner.
func (r cellRow) tombstone() bool { return r.Released && !strings.HasSuffix(r.Claim, markSuffix) }

// markSuffix is what the claim id of a mark has behind that of the claim it ends.
var markSuffix = lock.Claim{}.Tombstone().ClaimID

// forgotten is the claim id under which the floor is shown: it sorts below
// every claim and is released, so that only its ceiling counts.
const forgotten = "!"

// snapshot shows the cell as the lock reads a log.
func (c cell) snapshot(now lock.Millis) lock.Snapshot {
	s := lock.Snapshot{Now: now}
	if c.Floor > 0 {
		s.Rows = append(s.Rows, lock.Row{ClaimID: forgotten, Seq: 1, Released: true, Ceiling: c.Floor})
	}
	for _, r := range c.Rows {
		s.Rows = append(s.Rows, lock.Row{
			ClaimID: r.Claim, Seq: r.Seq, Waiting: r.Waiting, Released: r.Released,
			LockedAt: r.LockedAt, ExpiresAt: r.Expires, Ceiling: r.Ceiling, Holder: r.Holder,
		})
	}
	return s
}
