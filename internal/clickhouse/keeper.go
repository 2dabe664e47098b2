package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/chstate/chstate/lock"
)

// The strategy "keeper" keeps the lock's log in ClickHouse Keeper, by way of a
// KeeperMap table: one node for each key, replaced as a whole by compare and
// set. That orders all appends to a key, whichever replica they go through.
//
// A read may be behind: it shows what the answering replica's Keeper session
// knows. It is never a mixture, though, so a read that has my own newest row
// has everything appended before that row, and the lock takes nothing from a
// read that lacks it.

const (
	strategyAuto   = "auto"
	strategyKeeper = "keeper"
)

// conflictPause is how long at most the loser of a race waits before it tries again.
const conflictPause = 40 * time.Millisecond

// cellTypes are the columns of the KeeperMap table.
var cellTypes = []clickhouse.ColumnNameAndType{
	{Name: "key", Type: "String"}, {Name: "version", Type: "UInt64"}, {Name: "log", Type: "String"},
}

// createCells gives the statement that makes the KeeperMap table. All replicas
// must name the same path, and two tables never: it follows from the names.
func (n names) createCells() string {
	columns := make([]string, len(cellTypes))
	for i, c := range cellTypes {
		columns[i] = c.Name + " " + c.Type
	}
	return "CREATE TABLE IF NOT EXISTS " + n.qualified(n.cells()) + n.cluster + " (" + strings.Join(columns, ", ") + ")" +
		" ENGINE = KeeperMap(" + quoteString("/chstate/"+nodeName(n.schema)+"/"+nodeName(n.state)) + ") PRIMARY KEY key"
}

// wantsCells says whether an administrator should make the KeeperMap table.
func (c Config) wantsCells() bool {
	return c.LockStrategy == strategyKeeper || c.LockStrategy == strategyAuto && strings.HasPrefix(c.engine("", false), "Replicated")
}

// createMissingCells makes the KeeperMap table where the strategy asks for it.
// "auto" asks for it only together with a new lock table on replicas: processes
// of two strategies would not see each other, so what is in use stays in use.
func (db *DB) createMissingCells(ctx context.Context, s *server) (made bool, err error) {
	if !db.cfg.CreateTables || s.tables[db.names.cells()] != nil {
		return false, nil
	}
	auto := db.cfg.LockStrategy == strategyAuto && s.tables[db.names.lock] == nil &&
		strings.HasPrefix(db.cfg.engine(s.engine, s.cloud()), "Replicated")
	if db.cfg.LockStrategy != strategyKeeper && !auto {
		return false, nil
	}
	for _, ddl := range []string{db.createSchema(s), db.names.createCells()} {
		if ddl == "" {
			continue
		}
		if err := db.execute(ctx, s, forDDL, statement{text: ddl}); err != nil {
			if e := (*Error)(nil); auto && errors.As(err, &e) && !e.passing {
				db.log.Debug("the lock is kept in an ordinary table: a KeeperMap table cannot be made", "because", e.Reason)
				return false, nil
			}
			return false, db.noCells(err)
		}
	}
	return true, nil
}

// adoptCells takes the KeeperMap table into use where the strategy says so.
func (db *DB) adoptCells(s *server) error {
	t := s.tables[db.names.cells()]
	switch {
	case db.cfg.LockStrategy == strategyKeeper && t == nil:
		return db.missing(db.names.cells())
	case t == nil || (db.cfg.LockStrategy != strategyKeeper && db.cfg.LockStrategy != strategyAuto):
		return nil
	case t.engine != "KeeperMap":
		return db.noCells(&Error{
			Kind: Schema, Target: db.Target(),
			Reason: fmt.Sprintf("the table %s has the engine %s instead of KeeperMap", db.names.plain(db.names.cells()), t.engine),
		})
	}
	s.keeper = true
	return nil
}

// noCells says what can be done when there is no KeeperMap table to be had.
func (db *DB) noCells(err error) error {
	e := (*Error)(nil)
	if !errors.As(err, &e) || e.passing || e.Kind == Connect || e.Kind == Login {
		return err
	}
	if strings.Contains(e.Reason, "keeper_map_path_prefix") {
		e.Advice = "set keeper_map_path_prefix in the server's configuration, or use lock_strategy=table"
	} else {
		e.Advice = "let an administrator run what `chstate init --print-sql` prints, or use lock_strategy=table"
	}
	e.Reason = "lock_strategy=keeper needs a KeeperMap table: " + e.Reason
	return e
}

// cellsOfAll reads all cells, by key.
func (db *DB) cellsOfAll(ctx context.Context, s *server) ([]Locked, error) {
	text := "SELECT key, log, toUnixTimestamp64Milli(now64(3)) FROM " + db.names.qualified(db.names.cells()) + " ORDER BY key"
	return collect(ctx, db, s, forRead, statement{text: text}, func(rows driver.Rows) (Locked, error) {
		var (
			key, log string
			now      int64
		)
		if err := rows.Scan(&key, &log, &now); err != nil {
			return Locked{}, err
		}
		c, err := parseCell(log)
		return Locked{ID: key, Snapshot: c.snapshot(lock.Millis(now))}, err
	})
}

// nodeName writes a name with characters that every Keeper takes in a path.
func nodeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "-%02x", c)
		}
	}
	return b.String()
}

// stored is a cell as it was read.
type stored struct {
	cell
	there   bool
	version uint64
	now     lock.Millis
}

// readCell reads the cell of one key and the server's clock.
func (db *DB) readCell(ctx context.Context, s *server, key string) (stored, error) {
	var v values
	// The clock comes first, so that it is never later than the rows.
	text := "SELECT toUInt8(0) AS part, toUInt64(0) AS version, toString(toUnixTimestamp64Milli(now64(3))) AS log" +
		" UNION ALL SELECT toUInt8(1), version, log FROM " + db.names.qualified(db.names.cells()) + " WHERE key = " + v.text(key)
	type line struct {
		part    uint8
		version uint64
		text    string
	}
	lines, err := collect(ctx, db, s, forRead, statement{text: text, args: v}, func(rows driver.Rows) (l line, err error) {
		err = rows.Scan(&l.part, &l.version, &l.text)
		return l, err
	})
	if err != nil {
		return stored{}, err
	}
	var out stored
	for _, l := range lines {
		if l.part == 0 {
			ms, err := strconv.ParseInt(l.text, 10, 64)
			if err != nil {
				return stored{}, fmt.Errorf("the server's clock reads %q: %w", l.text, err)
			}
			out.now = lock.Millis(ms)
			continue
		}
		out.there, out.version = true, l.version
		if out.cell, err = parseCell(l.text); err != nil {
			return stored{}, err
		}
	}
	return out, nil
}

// appendCell appends a record to the cell of a key: it reads the cell, replaces
// it if it is still the one that was read, and reads again, since an UPDATE
// does not tell whether it found its row. Repeating that is harmless: a record
// that is there is not appended again.
func (db *DB) appendCell(ctx context.Context, s *server, key string, rec lock.Record) error {
	for tries := 0; ; tries++ {
		at, err := db.readCell(ctx, s, key)
		if err != nil {
			return err
		}
		if at.has(rec) {
			return nil
		}
		if tries > 1 {
			if err := db.pause(ctx, rand.N(conflictPause)); err != nil {
				return err
			}
		}
		if err := db.swapCell(ctx, s, key, at, rec); err != nil {
			return err
		}
	}
}

// swapCell replaces a cell by one with the record, unless somebody was
// faster: that is no error, the next read shows it.
func (db *DB) swapCell(ctx context.Context, s *server, key string, at stored, rec lock.Record) error {
	text, err := at.with(rec, at.now).text()
	if err != nil {
		return err
	}
	table := db.names.qualified(db.names.cells())
	if !at.there {
		err = db.insert(ctx, s, forSwap, "INSERT INTO "+table+" (key, version, log)", cellTypes, func(b driver.Batch) error {
			return b.Append(key, uint64(1), text)
		})
	} else {
		var v values
		update := "ALTER TABLE " + table + " UPDATE version = " + v.uint64(at.version+1) + ", log = " + quoteString(text) +
			" WHERE key = " + v.text(key) + " AND version = " + v.uint64(at.version)
		err = db.execute(ctx, s, forSwap, statement{text: update, args: v})
	}
	if e := (*Error)(nil); errors.As(err, &e) && e.lostRace() {
		return nil
	}
	return err
}

// lostRace says whether Keeper refused to replace a node because it is not the
// one any more that was read.
func (e *Error) lostRace() bool {
	return e.Code == 999 && (strings.Contains(e.Reason, "Node exists") || strings.Contains(e.Reason, "Bad version"))
}
