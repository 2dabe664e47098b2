package chstate

import (
	"bytes"
	"time"

	"github.com/chstate/chstate/internal/clickhouse"
)

// keptFor is how long a row that was read or written under a claim stands for
// what is stored. Nobody who takes the lock can change it meanwhile; who writes
// without it (SQL by hand, another process's import) is seen after that time.
const keptFor = time.Second

// kept is a row as it was last read or written under a claim. It stays with
// the claim, so that a stream of partial updates reads the state once and not
// once an update.
type kept struct {
	row      clickhouse.Row
	at       time.Time
	unlocked uint64 // Store.unlocked before it was read or written
}

// keep notes the row that is stored now, as far as this store knows; unlocked
// is Store.unlocked before that was asked or sent.
func (h *Hold) keep(row clickhouse.Row, unlocked uint64) {
	h.lock.Keep(&kept{row: clone(row), at: time.Now(), unlocked: unlocked})
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
// it follows closely, within the last second.
func (h *Hold) Known() (State, bool) {
	k := h.kept()
	if k == nil || time.Since(k.at) > keptFor || h.lock.Check() != nil {
		return State{}, false
	}
	return h.readAs(k.row), true
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
