package lock

import (
	"context"
	"time"
)

// Millis is a moment of the server's clock, in milliseconds since the Unix
// epoch (ClickHouse's DateTime64(3) ticks). It also serves as a version of a
// state row: a version is a moment, and a greater one shows over a lesser one.
type Millis int64

// Add gives the moment d later; fractions of a millisecond are cut off.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// Time gives the moment as a time in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// ServerFills stands for a ceiling that the server computes as its own time
// plus the record's lease.
const ServerFills Millis = -1

// Record is one row to be appended to the lock's log for a key: a claim, its
// renewal, a ticket or a tombstone.
type Record struct {
	ClaimID string // "!" + UUIDv7, one for each hold
	Seq     uint64 // order of the claim's rows: even ones count up, a tombstone has the odd number after the last

	Waiting  bool // a ticket: waits, does not claim
	Released bool // a tombstone

	// Lease is what the server adds to its own time to fill expires_at, and
	// the ceiling as well when Ceiling is ServerFills.
	Lease time.Duration
	// Ceiling is the fence: no write of this claim carries a version at or
	// above it. In a tombstone it is the last version sent, 0 when there was none.
	Ceiling Millis
	// Holder says for people who holds: JSON as Holder.Marshal writes it.
	Holder string
}

// Row is one row of the log as it was read.
type Row struct {
	ClaimID   string
	Seq       uint64
	Waiting   bool
	Released  bool
	LockedAt  Millis // the server's time of the append
	ExpiresAt Millis // LockedAt + lease
	Ceiling   Millis
	Holder    string
}

// Snapshot is what one look saw: every row of the key (several for one claim,
// in any order, some repeated), and the server's clock, read not later than
// the rows were. It may be earlier, by about as long as the Read took.
type Snapshot struct {
	Now  Millis
	Rows []Row
}

// Log is all that the lock needs of a database: an append-only log of rows by
// key. Implementations may repeat an Append whose answer was lost (its claim
// and seq make it the same row) and must return an error when they cannot
// know that the row was stored.
//
// A Read must see every row whose Append was acknowledged before the Read was
// sent; where that does not hold (lagging replicas), see Options.Skew and the
// strategies in the package documentation.
type Log interface {
	Append(ctx context.Context, key string, rec Record) error
	Read(ctx context.Context, key string) (Snapshot, error)
}
