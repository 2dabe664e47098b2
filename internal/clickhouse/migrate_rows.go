package clickhouse

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// candidate is a row of the older plugin's lock table: a claim that it holds,
// or hopes for.
type candidate struct {
	id, lock string
	at       int64 // locked_at, in milliseconds
}

// candidateLife is for how long such a row counts.
const candidateLife = "toIntervalSecond(300)"

var candidateTypes = []clickhouse.ColumnNameAndType{
	{Name: "state_id", Type: "String"}, {Name: "lock_id", Type: "String"}, {Name: "locked_at", Type: "DateTime64(3)"},
}

// candidates reads the live rows of a table in the older plugin's layout.
func (db *DB) candidates(ctx context.Context, s *server, table string) (map[candidate]bool, error) {
	text := "SELECT state_id, lock_id, toUnixTimestamp64Milli(toDateTime64(locked_at, 3)) FROM " + db.names.qualified(table) +
		" WHERE locked_at > now64(3) - " + candidateLife
	rows, err := collect(ctx, db, s, forRead, statement{text: text}, func(rows driver.Rows) (c candidate, err error) {
		err = rows.Scan(&c.id, &c.lock, &c.at)
		return c, err
	})
	out := make(map[candidate]bool, len(rows))
	for _, c := range rows {
		out[c] = true
	}
	return out, err
}

// follow brings the table to in line with the table from: rows that are in
// from, and were not when copied was, are inserted; those that were, and are
// no more, were released meanwhile and are removed. Copying a row again would
// bring back one that its owner has since released in the new table. It gives
// what is in from.
func (db *DB) follow(ctx context.Context, s *server, from, to string, copied map[candidate]bool) (map[candidate]bool, error) {
	there, err := db.candidates(ctx, s, from)
	if err != nil {
		return copied, err
	}
	var missing []candidate
	for c := range there {
		if !copied[c] {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		text := "INSERT INTO " + db.names.qualified(to) + " (state_id, lock_id, locked_at)"
		err := db.insert(ctx, s, forInsert, text, candidateTypes, func(b driver.Batch) error {
			for _, c := range missing {
				if err := b.Append(c.id, c.lock, time.UnixMilli(c.at)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return copied, err
		}
	}
	for c := range copied {
		if there[c] {
			continue
		}
		err := db.remove(ctx, s, to, func(v *values) string {
			return "state_id = " + v.text(c.id) + " AND lock_id = " + v.text(c.lock) + " AND locked_at = " + v.millis(c.at)
		})
		if err != nil {
			return copied, err
		}
	}
	return there, nil
}

// mutating says whether mutations of a table are at work, as far as this user may see.
func (db *DB) mutating(ctx context.Context, s *server, table string) bool {
	var v values
	text := "SELECT count() FROM system.mutations WHERE database = " + v.text(db.names.schema) + " AND table = " + v.text(table) + " AND NOT is_done"
	n, err := collect(ctx, db, s, forProbe, statement{text: text, args: v}, func(rows driver.Rows) (n uint64, err error) {
		err = rows.Scan(&n)
		return n, err
	})
	return err == nil && n[0] > 0
}
