package clickhouse

import (
	"context"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/chstate/chstate/lock"
)

// LockLog gives the lock's log, kept in the table <table>_lock, or in Keeper
// by the strategy "keeper".
func (db *DB) LockLog() lock.Log { return lockLog{db} }

var _ lock.Forgetter = lockLog{}

type lockLog struct{ db *DB }

const lockColumns = "state_id, lock_id, seq, waiting, released, locked_at, expires_at, ceiling, holder"

// Append is one INSERT … SELECT of constants, since the server fills the
// times: now64(3) is its own clock, and no text stands between.
func (l lockLog) Append(ctx context.Context, key string, rec lock.Record) error {
	if err := checkIDs(key); err != nil {
		return err
	}
	ctx = forLock(ctx)
	s, err := l.db.ready(ctx)
	if err != nil {
		return err
	}
	if s.keeper {
		return l.db.appendCell(ctx, s, key, rec)
	}
	// What is a number of ours is a literal: each parameter costs the server a
	// parser and a conversion, which for one row is a tenth of the statement.
	var v values
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	ceiling := "expires"
	if rec.Ceiling != lock.ServerFills {
		ceiling = v.millis(int64(rec.Ceiling))
	}
	text := "INSERT INTO " + l.db.names.Lock() + " (" + lockColumns + ") WITH now64(3) AS now, now + toIntervalMillisecond(" +
		strconv.FormatInt(rec.Lease.Milliseconds(), 10) + ") AS expires SELECT " +
		v.text(key) + ", " + v.text(rec.ClaimID) + ", " + number(rec.Seq) + ", " +
		flag(rec.Waiting) + ", " + flag(rec.Released) + ", now, expires, " + ceiling + ", " + v.text(rec.Holder)
	return l.db.execute(ctx, s, forClaim, statement{text: text, args: v})
}

// Read gives all rows of the key and the server's clock in one statement. Such a
// SELECT may open the table before it reads the clock (the newer analyzer
// does), and where statements take seconds the clock would be seconds later
// than what the rows show. But both are read while we wait: so the clock less
// that time is not later than the rows. Who shows no row shows no clock; then
// clockAndRows is asked, which costs half as much again.
func (l lockLog) Read(ctx context.Context, key string) (lock.Snapshot, error) {
	if err := checkIDs(key); err != nil {
		return lock.Snapshot{}, err
	}
	db, ctx := l.db, forLock(ctx)
	s, err := db.ready(ctx)
	if err != nil {
		return lock.Snapshot{}, err
	}
	if s.keeper {
		at, err := db.readCell(ctx, s, key)
		return at.snapshot(at.now), err
	}
	var v values
	text := "SELECT now64(3), lock_id, seq, waiting, released, locked_at, expires_at, ceiling, holder FROM " +
		db.names.Lock() + " WHERE state_id = " + v.text(key)
	clock, began := lock.SystemClock(), time.Now()
	sent := clock.Now()
	rows, err := collect(ctx, db, s, forLook, statement{text: text, args: v}, scanTimed)
	if err != nil {
		return lock.Snapshot{}, err
	}
	if len(rows) == 0 {
		return l.clockAndRows(ctx, s, key)
	}
	// The one clock counts a suspension, the other what is less than a tick.
	waited := max(clock.Now()-sent, time.Since(began))
	snapshot := lock.Snapshot{Now: rows[0].now.Add(-leastClock(waited)), Rows: make([]lock.Row, len(rows))}
	for i, row := range rows {
		snapshot.Rows[i] = row.row
	}
	return snapshot, nil
}

// leastClock is what the server's clock may have gained at most while we waited
// for so long: clocks run within 10 % of each other, and show whole milliseconds.
func leastClock(waited time.Duration) time.Duration {
	return waited + waited/10 + 2*time.Millisecond
}

// timedRow is a row of the log with the server's clock beside it.
type timedRow struct {
	now lock.Millis
	row lock.Row
}

func scanTimed(rows driver.Rows) (out timedRow, err error) {
	var (
		waiting, released               uint8
		now, lockedAt, expires, ceiling time.Time
	)
	err = rows.Scan(&now, &out.row.ClaimID, &out.row.Seq, &waiting, &released, &lockedAt, &expires, &ceiling, &out.row.Holder)
	out.now = lock.Millis(now.UnixMilli())
	out.row.Waiting, out.row.Released = waiting != 0, released != 0
	out.row.LockedAt, out.row.ExpiresAt = lock.Millis(lockedAt.UnixMilli()), lock.Millis(expires.UnixMilli())
	out.row.Ceiling = lock.Millis(ceiling.UnixMilli())
	return out, err
}

// clockAndRows is Read where the key may have no rows. The clock is the first
// part of a UNION: it is read before the second part opens the table, under the
// older and the newer analyzer alike.
func (l lockLog) clockAndRows(ctx context.Context, s *server, key string) (lock.Snapshot, error) {
	var v values
	text := lookSelect("''") + l.db.names.Lock() + " WHERE state_id = " + v.text(key)
	lines, err := collect(ctx, l.db, s, forLook, statement{text: text, args: v}, scanLook)
	if err != nil {
		return lock.Snapshot{}, err
	}
	var snapshot lock.Snapshot
	for _, line := range lines {
		if line.part == 0 {
			snapshot.Now = line.row.LockedAt
			continue
		}
		snapshot.Rows = append(snapshot.Rows, line.row)
	}
	return snapshot, nil
}

// lookSelect begins a look at any keys: the clock, then the rows of the table whose name
// comes next. key is the expression for the state id of each row.
func lookSelect(key string) string {
	const ticks = "toUnixTimestamp64Milli"
	return "SELECT toUInt8(0) AS part, '' AS key, '' AS claim, toUInt64(0) AS n, toUInt8(0) AS w, toUInt8(0) AS r, " +
		ticks + "(now64(3)) AS l, toInt64(0) AS e, toInt64(0) AS c, '' AS h" +
		" UNION ALL SELECT toUInt8(1), " + key + ", lock_id, seq, waiting, released, " +
		ticks + "(locked_at), " + ticks + "(expires_at), " + ticks + "(ceiling), holder FROM "
}

// lookLine is one row of a look: the clock (part 0, in LockedAt) or a row of the log.
type lookLine struct {
	part uint8
	key  string
	row  lock.Row
}

func scanLook(rows driver.Rows) (lookLine, error) {
	var (
		out                        lookLine
		waiting, released          uint8
		lockedAt, expires, ceiling int64
	)
	err := rows.Scan(&out.part, &out.key, &out.row.ClaimID, &out.row.Seq, &waiting, &released, &lockedAt, &expires, &ceiling, &out.row.Holder)
	out.row.Waiting, out.row.Released = waiting != 0, released != 0
	out.row.LockedAt, out.row.ExpiresAt, out.row.Ceiling = lock.Millis(lockedAt), lock.Millis(expires), lock.Millis(ceiling)
	return out, err
}

// Forget deletes the rows of claims that are over, for the older plugin's sake.
func (l lockLog) Forget(ctx context.Context, key string, claimIDs ...string) error {
	if s := l.db.server.Load(); s != nil && s.keeper { // which it does not look at
		return nil
	}
	return l.db.DropClaims(ctx, key, claimIDs...)
}

// Shared says whether the lock table was once the older plugin's own.
func (l lockLog) Shared() bool {
	s := l.db.server.Load()
	return s != nil && !s.keeper && s.tables[l.db.names.lock].shared()
}
