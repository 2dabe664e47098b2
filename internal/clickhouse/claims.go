package clickhouse

import (
	"context"

	"github.com/chstate/chstate/lock"
)

// Locked is what the lock's log says of one state id.
type Locked struct {
	ID string
	lock.Snapshot
}

// Claims reads the whole log, released claims and all, ordered by state id.
func (db *DB) Claims(ctx context.Context) ([]Locked, error) {
	if err := db.Warm(ctx); err != nil {
		return nil, err
	}
	if db.server.Load() == nil { // something is missing
		// Nobody has a lock where there is no table for it, and none is made for a look.
		s, err := db.survey(ctx)
		if err != nil || s.tables[db.names.lock] == nil && s.tables[db.names.cells()] == nil && db.cfg.CreateTables {
			return nil, err
		}
	}
	s, err := db.ready(ctx)
	if err != nil {
		return nil, err
	}
	if s.keeper {
		return db.cellsOfAll(ctx, s)
	}
	text := "SELECT * FROM (" + lookSelect("state_id") + db.names.Lock() + ") ORDER BY part, key"
	lines, err := collect(ctx, db, s, forRead, statement{text: text}, scanLook)
	if err != nil {
		return nil, err
	}
	var (
		out []Locked
		now lock.Millis
	)
	for _, l := range lines {
		if l.part == 0 {
			now = l.row.LockedAt
			continue
		}
		if len(out) == 0 || out[len(out)-1].ID != l.key {
			out = append(out, Locked{ID: l.key, Snapshot: lock.Snapshot{Now: now}})
		}
		last := &out[len(out)-1]
		last.Rows = append(last.Rows, l.row)
	}
	return out, nil
}

// DropClaims deletes the rows of claims: of the older plugin's, or of such that
// are over and in its way, for it counts every row, tombstones too.
func (db *DB) DropClaims(ctx context.Context, key string, claimIDs ...string) error {
	s, err := db.ready(ctx)
	if err != nil {
		return err
	}
	return db.remove(ctx, s, db.names.lock, func(v *values) string {
		return "state_id = " + v.text(key) + " AND lock_id IN (" + quoted(claimIDs) + ")"
	})
}
