// Package locktest tests a lock.Log: Run is a suite that every implementation
// has to pass, and Memory is one that lives in memory, for tests of what is
// built on the lock.
package locktest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/chstate/chstate/lock"
)

// TTL is how long a table keeps a row after its locked_at and expires_at.
const TTL = 300 * time.Second

// Memory is a lock.Log in memory: the rows of a ReplacingMergeTree, in the
// order of their arrival, which a merge or the TTL thins out only when asked.
type Memory struct {
	now func() lock.Millis

	mu      sync.Mutex
	rows    map[string][]lock.Row
	appends int
	reads   int
}

// NewMemory gives an empty log. now is the server's clock; nil takes the wall clock.
func NewMemory(now func() lock.Millis) *Memory {
	if now == nil {
		now = func() lock.Millis { return lock.Millis(time.Now().UnixMilli()) }
	}
	return &Memory{now: now, rows: map[string][]lock.Row{}}
}

// Append implements lock.Log.
func (m *Memory) Append(ctx context.Context, key string, rec lock.Record) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.appends++
	now := m.now()
	row := lock.Row{
		ClaimID: rec.ClaimID, Seq: rec.Seq, Waiting: rec.Waiting, Released: rec.Released,
		LockedAt: now, ExpiresAt: now.Add(rec.Lease), Ceiling: rec.Ceiling, Holder: rec.Holder,
	}
	if rec.Ceiling == lock.ServerFills {
		row.Ceiling = row.ExpiresAt
	}
	m.rows[key] = append(m.rows[key], row)
	return nil
}

// Read implements lock.Log.
func (m *Memory) Read(ctx context.Context, key string) (lock.Snapshot, error) {
	if ctx.Err() != nil {
		return lock.Snapshot{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	return lock.Snapshot{Now: m.now(), Rows: slices.Clone(m.rows[key])}, nil
}

// Forget removes the rows of claims, as a DELETE does.
func (m *Memory) Forget(ctx context.Context, key string, claimIDs ...string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[key] = slices.DeleteFunc(m.rows[key], func(row lock.Row) bool { return slices.Contains(claimIDs, row.ClaimID) })
	return nil
}

// Counts gives how many appends and reads there were.
func (m *Memory) Counts() (appends, reads int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.appends, m.reads
}

// Rows gives the rows of a key, in the order of their arrival, uncounted.
func (m *Memory) Rows(key string) []lock.Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rows[key])
}

// Empty removes all rows, as TRUNCATE does.
func (m *Memory) Empty() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.rows)
}

// Merge merges the rows of a key that the choice takes, given their places (it
// may be asked twice for one):
// of each claim the row with the greatest seq stays, and of several with one
// seq the last.
func (m *Memory) Merge(key string, choice func(i int) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := m.rows[key]
	best := map[string]int{}
	for i, row := range rows {
		if !choice(i) {
			continue
		}
		if j, ok := best[row.ClaimID]; !ok || row.Seq >= rows[j].Seq {
			best[row.ClaimID] = i
		}
	}
	var kept []lock.Row
	for i, row := range rows {
		if j, ok := best[row.ClaimID]; !ok || j == i || !choice(i) {
			kept = append(kept, row)
		}
	}
	m.rows[key] = kept
}

// Expire removes the rows of a key that are past their TTL by the server's
// clock and that the choice takes.
func (m *Memory) Expire(key string, choice func(i int) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, i := m.now(), -1
	m.rows[key] = slices.DeleteFunc(m.rows[key], func(row lock.Row) bool {
		i++
		return now > max(row.LockedAt, row.ExpiresAt).Add(TTL) && choice(i)
	})
}
