package chstate

import (
	"bytes"
	"time"

	"github.com/chstate/chstate/internal/clickhouse"
)

// keptFor is how long after a read the row that was read, and those that were
// written over it since, stand for what is stored. Nobody who takes the lock can
// change it meanwhile. Who writes without it (SQL by hand, another process's
// import) may be written over within that time, and is seen after it; after twice
// that by the add-on, which counts from when it was told.
const keptFor = time.Second / 2

// kept is a row as it was last read or written under a claim. It stays with
// the claim, so that a stream of partial updates reads the state twice a second
// and not once an update.
type kept struct {
	row      clickhouse.Row
	revision uint64    // tells one from another
	read     time.Time // when the server was last asked
	unlocked uint64    // Store.unlocked before that was asked, or the row was sent
}

// keep notes the row that is stored now, as far as this store knows; unlocked
// is Store.unlocked before that was asked or sent.
func (h *Hold) keep(row clickhouse.Row, read time.Time, unlocked uint64) {
	h.lock.Keep(&kept{row: clone(row), revision: h.s.revisions.Add(1), read: read, unlocked: unlocked})
}

// kept gives what was kept with the claim, if nothing of this store has
// changed it since; nil otherwise.
func (h *Hold) kept() *kept {
	k, ok := h.lock.Kept().(*kept)
	if !ok || k.unlocked != h.s.unlocked.Load() {
		return nil
	}
	return k
}

// Known gives the state that Get would give, when that is known without asking
// the server: it was read or written under this lock, by this hold or one that
// it follows closely, and the server was asked within the last half second. Its
// revision is another one whenever the state may be; it is 0 when nothing is known.
func (h *Hold) Known() (st State, revision uint64) {
	k := h.kept()
	if k == nil || time.Since(k.read) > keptFor || h.lock.Check() != nil {
		return State{}, 0
	}
	return h.readAs(k.row), k.revision
}

// newer corrects what a replica showed that may lag (strategy "settle") by what
// was written under the claim: found says whether it showed a row at all.
func (h *Hold) newer(row clickhouse.Row, found bool) (clickhouse.Row, bool) {
	k := h.kept()
	if h.s.opts.Lock.Strategy != "settle" || k == nil || found && row.UpdatedAt >= k.row.UpdatedAt {
		return row, found
	}
	return k.row, true
}

// readAs takes a row for the one that the next write of this hold replaces.
func (h *Hold) readAs(row clickhouse.Row) State {
	h.row, h.known = row, true
	return stateOf(clone(row))
}

// clone gives a row whose text is nobody else's.
func clone(row clickhouse.Row) clickhouse.Row {
	row.Partial, row.Completed = bytes.Clone(row.Partial), bytes.Clone(row.Completed)
	return row
}
