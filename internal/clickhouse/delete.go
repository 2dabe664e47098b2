package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/chstate/chstate/lock"
)

// deleteLimit is how long a DELETE is waited for. It is a mutation, which
// stands in line behind the table's other mutations. (Tests shorten it.)
var deleteLimit = 30 * time.Second

// Delete removes the rows of an id whose version is below before, and returns
// when they are gone.
func (db *DB) Delete(ctx context.Context, id string, before lock.Millis) error {
	if err := checkIDs(id); err != nil {
		return err
	}
	s, err := db.ready(ctx)
	if err != nil {
		return err
	}
	condition := func(v *values) string {
		return "state_id = " + v.text(id) + " AND updated_at < " + v.millis(int64(before))
	}
	// A DELETE costs a mutation even when it finds nothing.
	if left, err := db.count(ctx, s, db.names.state, condition); err != nil || left == 0 {
		return err
	}
	return db.remove(ctx, s, db.names.state, condition)
}

// remove runs one lightweight DELETE and waits, bounded, until it has its effect.
func (db *DB) remove(ctx context.Context, s *server, table string, condition func(*values) string) error {
	limited, cancel := context.WithTimeout(ctx, deleteLimit)
	defer cancel()
	var v values
	text := "DELETE FROM " + db.names.qualified(table) + " WHERE " + condition(&v)
	failed := db.execute(limited, s, forDelete, statement{text: text, args: v})
	e := explained(failed)
	if failed != nil {
		// Unfinished (another replica is away, another mutation fails) or not
		// answered: the rows may be gone all the same, or soon.
		if e == nil || (e.Code != codeUnfinished && limited.Err() == nil) || ctx.Err() != nil {
			return failed
		}
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		left, err := db.count(ctx, s, table, condition)
		if err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-limited.Done():
			timer.Stop()
			return db.stuck(ctx, s, table, e)
		}
	}
}

func (db *DB) count(ctx context.Context, s *server, table string, condition func(*values) string) (uint64, error) {
	var v values
	text := "SELECT count() FROM " + db.names.qualified(table) + " WHERE " + condition(&v)
	counts, err := collect(ctx, db, s, forCount, statement{text: text, args: v}, func(rows driver.Rows) (n uint64, err error) {
		err = rows.Scan(&n)
		return n, err
	})
	if err != nil {
		return 0, err
	}
	return counts[0], nil
}

// stuck explains a DELETE without effect: as a rule an older mutation fails
// again and again, and all later ones wait behind it.
func (db *DB) stuck(ctx context.Context, s *server, table string, cause *Error) error {
	if ctx.Err() != nil {
		return db.interrupted(ctx)
	}
	e := &Error{
		Kind:   Busy,
		Target: db.Target(),
		Reason: fmt.Sprintf("the DELETE on %s had no effect within %s", db.names.plain(table), deleteLimit),
		Advice: fmt.Sprintf("see system.mutations for database %s and table %s; KILL MUTATION ends one that fails", quoteString(db.names.schema), quoteString(table)),
	}
	if cause != nil {
		e.Code, e.Err = cause.Code, cause
		if cause.Code != 0 {
			e.Reason += " (" + cause.Reason + ")"
		}
	}
	var v values
	text := "SELECT mutation_id, command, latest_fail_reason FROM system.mutations WHERE database = " + v.text(db.names.schema) +
		" AND table = " + v.text(table) + " AND NOT is_done ORDER BY latest_fail_reason = '', create_time LIMIT 1"
	type mutation struct{ id, command, why string }
	found, err := collect(ctx, db, s, forRead, statement{text: text, args: v}, func(rows driver.Rows) (m mutation, err error) {
		err = rows.Scan(&m.id, &m.command, &m.why)
		return m, err
	})
	if err == nil && len(found) > 0 {
		e.Reason += fmt.Sprintf("; mutation %s (%s) is unfinished", found[0].id, oneLine(found[0].command))
		if found[0].why != "" {
			e.Reason += ": " + oneLine(found[0].why)
		}
	}
	return e
}

// clearChunk bounds the text of one DELETE's list of ids and versions. Each
// DELETE is a mutation, which may write every part of the table anew, so they
// should be few; but a mutation of replicated tables is a node in Keeper, which
// takes a megabyte, and a server whose max_query_size this user may not raise
// takes statements of 256 KiB.
func (db *DB) clearChunk(s *server) int {
	const setting = "max_query_size"
	if known, ok := s.known[setting]; !ok || known.fixed || db.left.has(setting) {
		return listBytes
	}
	return longStatement - 96<<10
}

// beforeAll is a moment before any that a DateTime64 can hold.
const beforeAll = "toInt64(-100000000000000)"

// Clear archives all states and removes those that are there now; it gives
// their number. A state written meanwhile stays.
func (db *DB) Clear(ctx context.Context, by string) (int, error) {
	s, err := db.ready(ctx)
	if err != nil {
		return 0, err
	}
	type version struct {
		id string
		at int64
	}
	text := "SELECT state_id, toUnixTimestamp64Milli(max(updated_at)) FROM " + db.names.State() + " GROUP BY state_id ORDER BY state_id"
	there, err := collect(ctx, db, s, forRead, statement{text: text}, func(rows driver.Rows) (v version, err error) {
		err = rows.Scan(&v.id, &v.at)
		return v, err
	})
	if err != nil || len(there) == 0 {
		return 0, err
	}
	// A row that replaces one of these from here on is archived instead of it,
	// and stays; so nothing is lost.
	if err := db.archive(ctx, s, "clear_all", by, nil); err != nil {
		return 0, err
	}
	chunk := db.clearChunk(s)
	for start := 0; start < len(there); {
		var ids, versions strings.Builder
		end := start
		for ; end < len(there) && (end == start || ids.Len()+versions.Len() < chunk); end++ {
			if end > start {
				ids.WriteByte(',')
				versions.WriteByte(',')
			}
			ids.WriteString(quoteString(there[end].id))
			versions.WriteString(strconv.FormatInt(there[end].at, 10))
		}
		// Each id up to the version that it had, and no further.
		condition := "toUnixTimestamp64Milli(updated_at) <= transform(state_id, [" + ids.String() + "], CAST([" + versions.String() + "], 'Array(Int64)'), " + beforeAll + ")"
		if end-start < len(there) {
			condition = "state_id BETWEEN " + quoteString(there[start].id) + " AND " + quoteString(there[end-1].id) + " AND " + condition
		}
		if err := db.remove(ctx, s, db.names.state, func(*values) string { return condition }); err != nil {
			return 0, err
		}
		start = end
		if db.cfg.Progress != nil {
			db.cfg.Progress(start, len(there))
		}
	}
	return len(there), nil
}
