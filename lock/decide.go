package lock

import (
	"slices"
	"strings"
	"time"
)

// Claim is what the log says of one claimant: the row with the greatest seq.
type Claim struct {
	ID        string
	Seq       uint64
	Waiting   bool // a ticket
	Released  bool
	LockedAt  Millis // its last sign of life
	ExpiresAt Millis
	Ceiling   Millis
	Holder    Holder
}

// Lease is the time that the claim asked for with its last row.
func (c Claim) Lease() time.Duration {
	return time.Duration(c.ExpiresAt-c.LockedAt) * time.Millisecond
}

// Foreign says whether the claim is one of the older Python plugin, which
// neither renews nor leaves a name, and writes no seq.
func (c Claim) Foreign() bool { return c.Seq == 0 && !strings.HasPrefix(c.ID, "!") }

// Look is one Read of the log with the reader's own clock on both sides of it.
type Look struct {
	Snapshot
	Sent     time.Duration // before the Read was sent
	Received time.Duration // after its answer came
}

// Memory is what earlier looks of one claimant showed of the others: since
// when, by my clock, each has shown the same seq. It finds holders dead whose
// expiry cannot be trusted, because the server's clock stepped back or because
// several servers answer.
type Memory map[string]sighting

type sighting struct {
	seq   uint64
	since time.Duration // receipt of the first look that showed seq
}

// unchangedLeases is how many of its own leases a claim must stand unchanged
// before it is dead. A holder stops at 0.8 of a lease after sending; with
// clocks that run within 10 % of each other 1.25 leaves room.
const unchangedLeases = 1.25

// observe notes a look, after it was decided upon.
func (m Memory) observe(look Look, claims map[string]Claim) {
	for id := range m {
		if _, ok := claims[id]; !ok {
			delete(m, id)
		}
	}
	for id, c := range claims {
		if s, ok := m[id]; !ok || s.seq != c.Seq {
			m[id] = sighting{seq: c.Seq, since: look.Received}
		}
	}
}

// Me is the claimant on whose behalf a look is decided.
type Me struct {
	ID       string
	Seq      uint64        // of the last row sent
	Ticket   bool          // that row is a ticket
	First    bool          // it is this claimant's first announcement: a newcomer
	Deadline time.Duration // by my clock; the claim is worth nothing after it
}

// Outcome is what a claimant does after a look.
type Outcome int

const (
	// Blocked: somebody else is before me; be a ticket.
	Blocked Outcome = iota
	// Acquired: the lock is mine.
	Acquired
	// Announce: write a claim (again): I am the oldest ticket and nobody
	// holds, or my own row is not there, expired, or came too late.
	Announce
	// Broken: my claim carries a tombstone that I did not write.
	Broken
)

func (o Outcome) String() string {
	return [...]string{"blocked", "acquired", "announce", "broken"}[o]
}

// Decision is the answer of Decide.
type Decision struct {
	Outcome Outcome
	// Blocker is the claim that is in the way, when Blocked: the live claim
	// that is the oldest, or else the oldest live ticket.
	Blocker Claim
	// Ahead is the number of live tickets that are older than me; with 0 it is
	// my turn once nobody holds.
	Ahead int
	// Floor is the first version that no earlier hold can have sent, as far as
	// the log tells: the server's now, and one above every other claim's ceiling.
	Floor Millis
	// Ceiling is my own claim's ceiling as stored, when Acquired.
	Ceiling Millis
	// Tickets says whether other live tickets wait.
	Tickets bool
	// Foreign says whether a row of the older plugin was seen, live or dead.
	Foreign bool
}

// Rules are the allowances of a decision.
type Rules struct {
	// Skew is how far apart the clocks of the servers that answer may be: 0
	// for one server.
	Skew time.Duration
}

// Decide judges a look for me. It is pure: what it needs of the past is in
// mem, which it brings up to date.
func (r Rules) Decide(look Look, me Me, mem Memory) Decision {
	claims := claimsOf(look.Rows, me.ID)
	d := Decision{Floor: look.Now}
	var holder, ticket *Claim
	for id, c := range claims {
		if id == me.ID {
			continue
		}
		d.Floor = max(d.Floor, c.Ceiling+1)
		d.Foreign = d.Foreign || c.Foreign()
		if r.dead(c, look, mem) {
			continue
		}
		if !c.Waiting {
			holder = older(holder, c)
			continue
		}
		d.Tickets = true
		ticket = older(ticket, c)
		if c.ID < me.ID {
			d.Ahead++
		}
	}
	switch {
	case holder != nil:
		d.Blocker = *holder
	case ticket != nil:
		d.Blocker = *ticket
	}

	mine, there := claims[me.ID]
	mem.observe(look, claims)
	switch {
	case there && mine.Released:
		d.Outcome = Broken
	case holder != nil:
		d.Outcome = Blocked
	case me.Ticket && d.Ahead == 0:
		d.Outcome = Announce
	case me.Ticket, me.First && d.Tickets, d.Ahead > 0:
		// A newcomer goes behind all who wait already, whatever the ids say:
		// ids are as old as their makers' clocks.
		d.Outcome = Blocked
	case !there || mine.Seq != me.Seq || mine.Waiting || r.expired(mine, look.Now) || look.Received >= me.Deadline:
		d.Outcome = Announce
	default:
		d.Outcome = Acquired
		d.Ceiling = mine.Ceiling
	}
	return d
}

// dead says whether a claim of somebody else counts no more.
func (r Rules) dead(c Claim, look Look, mem Memory) bool {
	if c.Released || r.expired(c, look.Now) {
		return true
	}
	s, ok := mem[c.ID]
	if !ok || s.seq != c.Seq {
		return false
	}
	return look.Sent-s.since >= time.Duration(unchangedLeases*float64(c.Lease()))
}

func (r Rules) expired(c Claim, now Millis) bool { return now > c.ExpiresAt.Add(r.Skew) }

func older(a *Claim, b Claim) *Claim {
	if a == nil || b.ID < a.ID {
		return &b
	}
	return a
}

// claimsOf takes the row with the greatest seq of each claim. Rows of one seq
// are one row that was sent again; where the server filled them at different
// times, others' are read as the longest-lived of them, and mine as the least:
// I must not count on a row that a merge may have dropped.
func claimsOf(rows []Row, mine string) map[string]Claim {
	claims := make(map[string]Claim, len(rows))
	for _, row := range rows {
		c, ok := claims[row.ClaimID]
		switch {
		case !ok || row.Seq > c.Seq:
			claims[row.ClaimID] = Claim{
				ID: row.ClaimID, Seq: row.Seq, Waiting: row.Waiting, Released: row.Released,
				LockedAt: row.LockedAt, ExpiresAt: row.ExpiresAt, Ceiling: row.Ceiling,
				Holder: ParseHolder(row.Holder),
			}
			continue
		case row.Seq < c.Seq:
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
	return claims
}

// Claims gives what the rows of a snapshot say, one claim per claim id, oldest
// first, for people.
func (s Snapshot) Claims() []Claim {
	byID := claimsOf(s.Rows, "")
	out := make([]Claim, 0, len(byID))
	for _, c := range byID {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Claim) int { return strings.Compare(a.ID, b.ID) })
	return out
}
