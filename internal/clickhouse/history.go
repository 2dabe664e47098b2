package clickhouse

import (
	"context"
	"iter"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/chstate/chstate/lock"
)

// Archived is a row of the history: a state that was replaced or deleted.
type Archived struct {
	Row
	At     lock.Millis // when
	By     string      // by whom
	Reason string      // update, set, delete, clear_all, import, rollback
}

// Archived yields what the history has of one id, newest version first.
func (db *DB) Archived(ctx context.Context, id string) iter.Seq2[Archived, error] {
	return func(yield func(Archived, error) bool) {
		rows, err := db.archived(ctx, id)
		if err != nil {
			yield(Archived{}, err)
			return
		}
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (db *DB) archived(ctx context.Context, id string) ([]Archived, error) {
	if err := checkIDs(id); err != nil || db.cfg.HistoryDays == 0 {
		return nil, err
	}
	var v values
	text := "SELECT " + rowColumns + ", toUnixTimestamp64Milli(archived_at), archived_by, reason FROM " + db.names.History() +
		" FINAL WHERE state_id = " + v.text(id) + " ORDER BY updated_at DESC"
	scan := func(rows driver.Rows) (Archived, error) {
		var (
			a                  Archived
			partial, completed *string
			version, at        int64
		)
		err := rows.Scan(&a.ID, &partial, &completed, &version, &at, &a.By, &a.Reason)
		a.Partial, a.Completed = half(partial), half(completed)
		a.UpdatedAt, a.At = lock.Millis(version), lock.Millis(at)
		return a, err
	}
	var found []Archived
	err := db.read(ctx, db.names.history, func(ctx context.Context, s *server) (err error) {
		found, err = collect(ctx, db, s, forRead, statement{text: text, args: v}, scan)
		return err
	})
	return found, err
}

// Prune deletes what was archived before a moment and gives the number of
// versions that were.
func (db *DB) Prune(ctx context.Context, before lock.Millis) (int, error) {
	s, err := db.ready(ctx)
	if err != nil || !s.history {
		return 0, err
	}
	condition := func(v *values) string { return "archived_at < " + v.millis(int64(before)) }
	n, err := db.count(ctx, s, db.names.history, condition)
	if err != nil || n == 0 {
		return 0, err
	}
	return int(n), db.remove(ctx, s, db.names.history, condition)
}
