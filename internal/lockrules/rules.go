// Package lockrules lets the simulation (internal/sim) take the lock's rules
// away one by one, to see that each is needed, and watch what the lock does.
// Package lock asks for them where it decides; a user of the library can
// neither name nor set them, and in a program they are all zero.
package lockrules

import "time"

// Off is a set of rules that are switched off.
type Off uint32

const (
	// Alone: a claim must be alone; without it the lowest id wins among several.
	Alone Off = 1 << iota
	// Deadline: the answers to announce, renew and write count only before the deadline.
	Deadline
	// SeqOrder: a claim's rows are ordered by seq; without it by the server's time.
	SeqOrder
	// TombstoneCeiling: a tombstone keeps the last version sent.
	TombstoneCeiling
	// DeadCeiling: dead claims count for the floor.
	DeadCeiling
	// AnchorSent: version clock and deadline run from the sending of a
	// request; without it from the receipt of its answer.
	AnchorSent
	// Mark: who takes over a dead claim breaks it, and looks again.
	Mark
	// LookAfterRenewal: a raised ceiling is used only after another look.
	LookAfterRenewal
	// Unchanged waits for 1.25 leases before an unchanged claim is dead;
	// without it one look at the same seq, half a lease later, is enough.
	Unchanged
	// CeilingCheck: no write at or above the ceiling.
	CeilingCheck
	// ArrivalOrder orders a claim's rows by their arrival instead of seq.
	ArrivalOrder
	// StepBack: a newcomer whose clock is behind takes an id behind the others'.
	StepBack
)

// Event is a turn in the life of a lease, for the simulation's books.
type Event struct {
	ID       string
	Kind     Kind
	Rows     any           // Began: the rows of the winning look, as the log gave them
	Deadline time.Duration // Began, Extended: by the locker's clock
}

// Kind of an Event.
type Kind int

// The kinds.
const (
	Began Kind = iota
	Extended
	Ended
)

// Rules of one locker. The zero value is the protocol as it is.
type Rules struct {
	Off   Off
	NewID func() ([16]byte, error) // instead of a random UUIDv7
	Rand  func(n int64) int64      // instead of math/rand
	Rows  func() uint64            // rows that a new claim counts as sent already
	Tell  func(Event)              // nil: nobody listens
}

// RowsBefore is 0, for a claim's id is its own.
func (r *Rules) RowsBefore() uint64 {
	if r.Rows == nil {
		return 0
	}
	return r.Rows()
}

// Without says whether a rule is switched off.
func (r *Rules) Without(rule Off) bool { return r.Off&rule != 0 }

// Emit tells who listens.
func (r *Rules) Emit(e Event) {
	if r.Tell != nil {
		r.Tell(e)
	}
}

// Carrier is a lock.Clock that brings rules along. Only this module can write one.
type Carrier interface{ LockRules() *Rules }
