package lock_test

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/lockrules"
	"github.com/chstate/chstate/lock"
)

// The small worlds of the exhaustive check: two claimants, whose clocks run 9 %
// apart, and every order in which their requests are sent, executed and
// answered while time goes on tick by tick.
const (
	smallLease = time.Second
	smallTick  = 600 * time.Millisecond
)

// smallRows is how many rows of one claim there are at most, its tombstone
// aside, where all states are gone through.
var smallRows uint64 = 3

// bounds say what may happen in a small world, beside delays.
type bounds struct {
	without lockrules.Off
	rows    uint64 // of one claim at most, its tombstone aside
	ticks   int
	deaths  bool          // one of the two may die at any moment
	jumps   []lock.Millis // the server's clock may jump by one of these, once
}

// doing is what a claimant is about.
type doing int

const (
	starting doing = iota
	announcing
	looking // to get the lock
	ticketing
	marking
	holding
	renewing
	checking // looks some time after a renewal
	releasing
	done
)

// actor is one claimant.
type actor struct {
	doing    doing
	rec      lock.Record // being appended
	executed bool        // the request that is under way
	sent     time.Duration
	snap     lock.Snapshot
	me       lock.Me
	mem      lock.Memory
	rows     uint64
	dead     bool

	// As holder:
	number  int // of the winning look, among all looks
	looked  int // number of the look under way
	floor   lock.Millis
	ceiling lock.Millis
	raised  lock.Millis
}

// small is a state of the small world.
type small struct {
	bounds *bounds
	actors [2]actor
	table  []lock.Row
	ticks  int
	jump   lock.Millis
	jumped bool // ahead
	died   bool
	looks  int
}

func (s *small) now() lock.Millis {
	return noon + lock.Millis(s.ticks)*ticks(smallTick) + s.jump
}

func (s *small) clock(i int) time.Duration {
	t := float64(time.Duration(s.ticks) * smallTick)
	return time.Duration(t * [...]float64{1.045, 0.955}[i])
}

func (s *small) clone() *small {
	c := *s
	c.table = slices.Clone(s.table)
	for i := range c.actors {
		c.actors[i].mem = maps.Clone(s.actors[i].mem)
	}
	return &c
}

// key tells states apart, leaving out what cannot matter any more.
func (s *small) key() (b []byte) {
	num := func(of ...int64) {
		for _, n := range of {
			b = binary.AppendVarint(b, n)
		}
	}
	yes := func(of ...bool) {
		for _, y := range of {
			if y {
				num(1)
			} else {
				num(0)
			}
		}
	}
	rows := func(rows []lock.Row) {
		num(int64(len(rows)))
		for _, r := range rows {
			b = append(b, r.ClaimID...)
			num(int64(r.Seq), int64(r.LockedAt-noon), int64(r.ExpiresAt-noon), int64(r.Ceiling-noon))
			yes(r.Waiting, r.Released)
		}
	}
	num(int64(s.ticks), int64(s.jump))
	yes(s.jumped, s.died)
	rows(s.table)
	for i := range s.actors {
		a := &s.actors[i]
		num(int64(a.doing), int64(a.rows), int64(a.floor), int64(a.ceiling), int64(a.raised))
		yes(a.executed, a.dead, a.number > 0)
		if a.doing == done || a.dead && a.executed {
			continue
		}
		num(int64(a.me.Seq), int64(a.me.Deadline))
		yes(a.me.Ticket, a.me.First)
		switch a.doing {
		case looking, checking:
			num(int64(a.sent))
			if a.executed {
				num(int64(a.snap.Now - noon))
				rows(a.snap.Rows)
			}
		case holding:
		default:
			num(int64(a.sent), int64(a.rec.Seq), int64(a.rec.Ceiling-noon))
		}
		if a.number == 0 {
			b = fmt.Append(b, a.mem)
		}
	}
	x, y := &s.actors[0], &s.actors[1]
	yes(x.number < y.number, x.looked < y.looked, x.looked < y.number, x.number < y.looked)
	return b
}

func (s *small) holds(i int) bool {
	a := &s.actors[i]
	inTime := s.clock(i) < a.me.Deadline || s.bounds.without == lockrules.Deadline
	return a.number > 0 && a.doing != releasing && a.doing != done && !a.dead && inTime
}

// wrong says which promise a state breaks, if any.
func (s *small) wrong() string {
	if s.holds(0) && s.holds(1) && !s.jumped {
		return "both hold"
	}
	a, b := &s.actors[0], &s.actors[1]
	if a.number > b.number {
		a, b = b, a
	}
	if a.number > 0 && a.ceiling > b.floor {
		return fmt.Sprintf("the older hold writes up to %d, the newer one from %d", a.ceiling-noon, b.floor-noon)
	}
	return ""
}

// send begins an append.
func (s *small) send(i int, to doing, rec lock.Record) {
	a := &s.actors[i]
	a.doing, a.executed, a.sent = to, false, s.clock(i)
	rec.ClaimID, rec.Lease = a.me.ID, smallLease
	a.rows++
	rec.Seq = 2 * a.rows
	a.rec = rec
	if to == announcing || to == ticketing {
		a.me.Seq, a.me.Ticket = rec.Seq, rec.Waiting
	}
	if to == announcing {
		a.me.Deadline = a.sent + smallLease*8/10
	}
}

func (s *small) look(i int, to doing) {
	a := &s.actors[i]
	a.doing, a.executed, a.sent = to, false, s.clock(i)
}

// execute does on the server what is under way.
func (s *small) execute(i int) {
	a := &s.actors[i]
	a.executed = true
	if a.doing == looking || a.doing == checking {
		s.looks++
		a.looked = s.looks
		a.snap = lock.Snapshot{Now: s.now(), Rows: slices.Clone(s.table)}
		return
	}
	row := lock.Row{
		ClaimID: a.rec.ClaimID, Seq: a.rec.Seq, Waiting: a.rec.Waiting, Released: a.rec.Released,
		LockedAt: s.now(), ExpiresAt: s.now().Add(a.rec.Lease), Ceiling: a.rec.Ceiling,
	}
	if a.rec.Ceiling == lock.ServerFills {
		row.Ceiling = row.ExpiresAt
	}
	// A merge would leave the row with the greatest seq: rows below it never count.
	s.table = slices.DeleteFunc(s.table, func(r lock.Row) bool { return r.ClaimID == row.ClaimID && r.Seq <= row.Seq })
	s.table = append(s.table, row)
}

// answer brings the answer back, and the claimant does what follows from it.
func (s *small) answer(i int) {
	a := &s.actors[i]
	switch a.doing {
	case announcing, ticketing, marking:
		s.look(i, looking)
	case looking:
		s.decide(i)
	case renewing:
		if s.clock(i) >= a.me.Deadline {
			a.doing = done
			return
		}
		a.me.Deadline = a.sent + smallLease*8/10
		a.raised = a.rec.Ceiling
		if s.bounds.without == lockrules.LookAfterRenewal {
			a.ceiling = a.raised
		}
		a.doing = holding
	case checking:
		d := s.decision(i)
		if !d.There || d.Mine.Released {
			a.doing = done
			return
		}
		a.ceiling = max(a.ceiling, a.raised)
		a.doing = holding
	case releasing:
		a.doing = done
	}
}

func (s *small) decision(i int) lock.Decision {
	a := &s.actors[i]
	look := lock.Look{Snapshot: a.snap, Sent: a.sent, Received: s.clock(i)}
	return lock.RulesWithout(s.bounds.without).Decide(look, a.me, a.mem)
}

func (s *small) decide(i int) {
	a := &s.actors[i]
	d := s.decision(i)
	a.me.First = false
	switch d.Outcome {
	case lock.Acquired:
		a.doing, a.number = holding, a.looked
		a.floor, a.ceiling = d.Floor, d.Mine.Ceiling
	case lock.Blocked:
		if a.me.Ticket {
			s.look(i, looking)
			return
		}
		s.send(i, ticketing, lock.Record{Waiting: true})
	case lock.Announce:
		s.send(i, announcing, lock.Record{Ceiling: lock.ServerFills})
	case lock.TakeOver:
		a.doing, a.executed = marking, false
		a.rec = d.Dead[0].Tombstone()
	case lock.Broken:
		a.doing = done
	}
}

// next gives every state that may follow.
func (s *small) next() (out []*small) {
	step := func(do func(n *small)) {
		n := s.clone()
		do(n)
		out = append(out, n)
	}
	if s.ticks < s.bounds.ticks {
		step(func(n *small) { n.ticks++ })
	}
	for _, by := range s.bounds.jumps {
		if s.jump == 0 {
			step(func(n *small) { n.jump, n.jumped = by, by > 0 })
		}
	}
	for i := range s.actors {
		a := &s.actors[i]
		underWay := a.doing != starting && a.doing != holding && a.doing != done
		if underWay && !a.executed {
			step(func(n *small) { n.execute(i) })
		}
		if a.dead || a.rows > s.bounds.rows {
			continue
		}
		if s.bounds.deaths && !s.died && a.doing != starting && a.doing != done {
			step(func(n *small) { n.actors[i].dead, n.died = true, true })
		}
		switch {
		case a.doing == starting:
			step(func(n *small) { n.send(i, announcing, lock.Record{Ceiling: lock.ServerFills}) })
		case underWay && a.executed:
			step(func(n *small) { n.answer(i) })
		case a.doing == holding:
			if s.clock(i) < a.me.Deadline {
				step(func(n *small) {
					// The version clock is at the server's at most.
					n.send(i, renewing, lock.Record{Ceiling: max(a.ceiling, a.raised, n.now().Add(smallLease))})
				})
			}
			if a.raised > a.ceiling { // else a look can only end the hold
				step(func(n *small) { n.look(i, checking) })
			}
			step(func(n *small) {
				n.send(i, releasing, lock.Record{Released: true, Ceiling: n.actors[i].ceiling - 1})
				n.actors[i].rec.Seq--
			})
		}
	}
	return out
}

// smallWorlds are those that are gone through.
var smallWorlds = map[string]bounds{
	"delays":                   {ticks: 2},
	"a death":                  {ticks: 2, deaths: true},
	"the clock is set forward": {ticks: 1, jumps: []lock.Millis{ticks(2 * smallLease)}},
	"the clock is set back":    {ticks: 1, jumps: []lock.Millis{-ticks(2 * smallLease)}},
}

// TestEveryInterleaving finds no promise broken in any of them.
func TestEveryInterleaving(t *testing.T) {
	for name, b := range smallWorlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.rows = smallRows
			n, wrong := everyInterleaving(&b)
			if wrong != "" {
				t.Fatal(wrong)
			}
			t.Logf("%d states, %d with a holder, %d in which both have held", n.states, n.held, n.both)
			if n.held == 0 || n.both == 0 {
				t.Error("this world is too small")
			}
		})
	}
}

// TestEveryInterleavingWithout finds one broken without some rule.
func TestEveryInterleavingWithout(t *testing.T) {
	for name, without := range map[string]struct {
		rule  lockrules.Off
		world string
	}{
		"being alone":              {lockrules.Alone, "delays"},
		"the deadline":             {lockrules.Deadline, "delays"},
		"the mark":                 {lockrules.Mark, "the clock is set forward"},
		"the look after a renewal": {lockrules.LookAfterRenewal, "the clock is set forward"},
		"the tombstone's ceiling":  {lockrules.TombstoneCeiling, "the clock is set back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := smallWorlds[without.world]
			b.without, b.rows = without.rule, 3
			if n, wrong := everyInterleaving(&b); wrong == "" {
				t.Errorf("nothing is broken in %d states", n.states)
			}
		})
	}
}

// counted is how much of a small world was seen.
type counted struct{ states, held, both int }

// everyInterleaving goes through a small world, until a promise is broken: then
// it gives the way there.
func everyInterleaving(b *bounds) (n counted, wrong string) {
	first := &small{bounds: b}
	for i, id := range []string{"!a", "!b"} {
		first.actors[i] = actor{me: lock.Me{ID: id, First: true}, mem: lock.Memory{}}
	}
	type path struct {
		state *small
		from  *path
	}
	seen := map[uint64]bool{}
	seed := maphash.MakeSeed()
	todo := []*path{{state: first}}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		key := maphash.Bytes(seed, p.state.key())
		if seen[key] {
			continue
		}
		seen[key] = true
		n.states++
		if p.state.holds(0) || p.state.holds(1) {
			n.held++
		}
		if p.state.actors[0].number > 0 && p.state.actors[1].number > 0 {
			n.both++
		}
		if wrong := p.state.wrong(); wrong != "" {
			var way []string
			for ; p != nil; p = p.from {
				way = append(way, fmt.Sprintf("%+v", p.state.actors))
			}
			slices.Reverse(way)
			return n, wrong + ":\n" + strings.Join(way, "\n")
		}
		for _, next := range p.state.next() {
			todo = append(todo, &path{next, p})
		}
	}
	return n, ""
}
