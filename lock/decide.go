package lock

import (
	"slices"
	"strings"
	"time"

	"github.com/chstate/chstate/internal/lockrules"
)

// Claim is what the log says of one claimant: the row with the greatest seq.
type Claim struct {
	ID        string
	Seq       uint64
	Waiting   bool   // a ticket
	Released  bool   // by its owner, or broken
	Broken    bool   // somebody else ended it, see Break
	LockedAt  Millis // its last sign of life
	ExpiresAt Millis
	Ceiling   Millis
	Holder    Holder
	BrokenBy  Holder // who did, when Broken

	holder, brokenBy string // as stored
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

	// Of a claim of the older plugin:
	lockedAt Millis // tells its rows apart
	late     bool   // see latecomers
}

// unchangedLeases is how many of its own leases a claim must stand unchanged
// before it is dead. A holder stops at 0.8 of a lease after sending; with
// clocks that run within 10 % of each other 1.25 leaves room.
const unchangedLeases = 1.25

// observe notes a look, after it was decided upon.
func (m Memory) observe(look Look, claims map[string]Claim, late map[string]bool) {
	for id := range m {
		if _, ok := claims[id]; !ok {
			delete(m, id)
		}
	}
	for id, c := range claims {
		s, ok := m[id]
		if !ok || s.seq != c.Seq || c.Foreign() && s.lockedAt != c.LockedAt {
			s.since = look.Received
		}
		s.seq, s.lockedAt, s.late = c.Seq, c.LockedAt, late[id]
		m[id] = s
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
	// TakeOver: the lock would be mine, but for claims that died without a
	// tombstone. Break those, and look again.
	TakeOver
	// Broken: my claim was ended by somebody else.
	Broken
)

func (o Outcome) String() string {
	return [...]string{"blocked", "acquired", "announce", "take over", "broken"}[o]
}

// Decision is the answer of Decide.
type Decision struct {
	Outcome Outcome
	// Mine is my own claim as stored, when There.
	Mine  Claim
	There bool
	// Blocker is the claim that is in the way, when Blocked: the live claim
	// that is the oldest, or else the oldest live ticket.
	Blocker Claim
	// Ahead is how many live tickets are older than me.
	Ahead int
	// Tickets says whether others wait.
	Tickets bool
	// Youngest is the id of the youngest other live claim, "" for none. Those
	// of the older plugin have no age.
	Youngest string
	// Dead are the claims that TakeOver is about, by id.
	Dead []Claim
	// Others says whether the log has any claim but mine.
	Others bool
	// Floor is the first version that no earlier hold can have sent, as far as
	// the log tells: the server's now, and one above every other claim's ceiling.
	Floor Millis
	// Foreign says whether a row of the older plugin was seen, live or dead;
	// Older, whether a live one was: it holds the lock or wants it.
	Foreign, Older bool
	// Over are the claims of ours in its way that may be deleted, when Older, or
	// when the log is Shared and their owners have not deleted them.
	Over []string
}

// Rules are the allowances of a decision.
type Rules struct {
	// Skew is how far apart the clocks of the servers that answer may be: 0
	// for one server.
	Skew time.Duration
	// Shared says that the older plugin is known to use the log.
	Shared bool

	off lockrules.Off
}

// Decide judges a look for me. It is pure: what it needs of the past is in
// mem, which it brings up to date.
func (r Rules) Decide(look Look, me Me, mem Memory) Decision {
	claims := r.claimsOf(look.Rows, me.ID)
	d := Decision{Floor: look.Now}
	d.Mine, d.There = claims[me.ID]
	var late map[string]bool
	if r.Skew == 0 { // replicas may show what the older plugin stored long after it was
		late = mem.latecomers(claims, me.ID)
	}
	var holder, ticket *Claim
	for id, c := range claims {
		if id == me.ID {
			continue
		}
		d.Others = true
		d.Foreign = d.Foreign || c.Foreign()
		if r.counts(c) {
			d.Floor = max(d.Floor, c.Ceiling+1)
		}
		if r.dead(c, look, mem) {
			if c.leavesHolder() {
				d.Dead = append(d.Dead, c)
			}
			continue
		}
		if c.Foreign() {
			d.Older = true
			if !late[id] {
				holder = older(holder, c)
			}
			continue
		}
		d.Youngest = max(d.Youngest, c.ID)
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
	slices.SortFunc(d.Dead, byID)
	switch {
	case d.Older:
		d.Over = over(claims, look.Now)
	case r.Shared:
		d.Over = over(claims, look.Now.Add(-sweepGrace))
	}
	mem.observe(look, claims, late)
	d.Outcome = r.outcome(look, me, d, holder)
	switch {
	case d.Outcome != Blocked:
	case holder != nil:
		d.Blocker = holder.parsed()
	case ticket != nil:
		d.Blocker = ticket.parsed()
	}
	return d
}

// outcome is the decision itself, once the others are told apart.
func (r Rules) outcome(look Look, me Me, d Decision, holder *Claim) Outcome {
	switch {
	case d.There && d.Mine.Released:
		return Broken
	case holder != nil && (r.off&lockrules.Alone == 0 || me.ID > holder.ID):
		return Blocked
	case me.Ticket && d.Ahead == 0:
		return Announce
	case me.Ticket, me.First && d.Tickets, d.Ahead > 0:
		// A newcomer goes behind all who wait already, whatever the ids say:
		// ids are as old as their makers' clocks.
		return Blocked
	case !d.There || d.Mine.Seq != me.Seq || d.Mine.Waiting || r.expired(d.Mine, look.Now) || r.late(look, me):
		return Announce
	case len(d.Dead) > 0 && r.off&lockrules.Mark == 0:
		return TakeOver
	}
	return Acquired
}

func (r Rules) late(look Look, me Me) bool {
	return look.Received >= me.Deadline && r.off&lockrules.Deadline == 0
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
	leases := unchangedLeases
	if r.off&lockrules.Unchanged != 0 {
		leases = 0.5
	}
	return look.Sent-s.since >= time.Duration(leases*float64(c.Lease()))
}

func (r Rules) expired(c Claim, now Millis) bool { return now > c.ExpiresAt.Add(r.Skew) }

// counts says whether a claim's ceiling is a bound for later versions.
func (r Rules) counts(c Claim) bool {
	switch {
	case c.Foreign():
		// It knows of no ceiling: its versions are the server's time. The
		// column's default, 300 s ahead, would hide what it writes next.
		return false
	case r.off&lockrules.DeadCeiling != 0 && (!c.Released || c.Broken):
		return false
	case r.off&lockrules.TombstoneCeiling != 0 && c.Released && !c.Broken:
		return false
	}
	return true
}

// leavesHolder says whether a dead claim may have a holder who does not know
// it. Tickets hold nothing, and the older plugin never asks again.
func (c Claim) leavesHolder() bool { return !c.Released && !c.Waiting && !c.Foreign() }

func older(a *Claim, b Claim) *Claim {
	if a == nil || b.ID < a.ID {
		return &b
	}
	return a
}

func byID(a, b Claim) int { return strings.Compare(a.ID, b.ID) }
