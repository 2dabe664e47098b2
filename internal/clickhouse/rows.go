package clickhouse

import (
	"context"
	"iter"
	"maps"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/chstate/chstate/internal/glob"
	"github.com/chstate/chstate/lock"
)

const (
	rowColumns  = "state_id, partial_state, completed_state, toUnixTimestamp64Milli(updated_at)"
	stateFields = "state_id, partial_state, completed_state, updated_at"
)

func scanRow(rows driver.Rows) (Row, error) {
	var (
		r                  Row
		partial, completed *string
		at                 int64
	)
	err := rows.Scan(&r.ID, &partial, &completed, &at)
	r.Partial, r.Completed, r.UpdatedAt = half(partial), half(completed), lock.Millis(at)
	return r, err
}

// half keeps NULL and the empty text apart.
func half(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

// Get reads the row of one id that shows: the one with the greatest version.
func (db *DB) Get(ctx context.Context, id string) (row Row, found bool, err error) {
	for r, err := range db.RowsOf(ctx, []string{id}) {
		if err != nil {
			return Row{}, false, err
		}
		return r, true, nil
	}
	return Row{}, false, nil
}

// Newest gives the server's clock, and the greatest version stored of each of
// the ids that exists, to those who are going to write.
func (db *DB) Newest(ctx context.Context, ids ...string) (now lock.Millis, newest map[string]lock.Millis, err error) {
	if err := checkIDs(ids...); err != nil {
		return 0, nil, err
	}
	s, err := db.ready(ctx)
	if err != nil {
		return 0, nil, err
	}
	return db.newestOf(ctx, s, ids)
}

// Versions is Newest for those who only read.
func (db *DB) Versions(ctx context.Context, ids ...string) (now lock.Millis, newest map[string]lock.Millis, err error) {
	if err := checkIDs(ids...); err != nil {
		return 0, nil, err
	}
	err = db.read(ctx, db.names.state, func(ctx context.Context, s *server) (err error) {
		now, newest, err = db.newestOf(ctx, s, ids)
		return err
	})
	return now, newest, err
}

func (db *DB) newestOf(ctx context.Context, s *server, ids []string) (now lock.Millis, newest map[string]lock.Millis, err error) {
	newest = make(map[string]lock.Millis, len(ids))
	pieces := chunks(ids)
	if len(pieces) == 0 {
		pieces = [][]string{nil} // then the clock alone is asked for
	}
	for _, piece := range pieces {
		at, found, err := db.newest(ctx, s, piece)
		if err != nil {
			return 0, nil, err
		}
		now = max(now, at)
		maps.Copy(newest, found)
	}
	return now, newest, nil
}

func (db *DB) newest(ctx context.Context, s *server, ids []string) (now lock.Millis, newest map[string]lock.Millis, err error) {
	var v values
	st := statement{text: "SELECT toUInt8(0) AS part, '' AS id, toUnixTimestamp64Milli(now64(3)) AS at"}
	if len(ids) > 0 {
		st.text += " UNION ALL SELECT toUInt8(1), state_id, toUnixTimestamp64Milli(max(updated_at)) FROM " + db.names.State() +
			" WHERE " + v.ids(ids) + " GROUP BY state_id"
	}
	st.args = v
	type line struct {
		part uint8
		id   string
		at   int64
	}
	lines, err := collect(ctx, db, s, forRead, st, func(rows driver.Rows) (l line, err error) {
		err = rows.Scan(&l.part, &l.id, &l.at)
		return l, err
	})
	newest = map[string]lock.Millis{}
	for _, l := range lines {
		if l.part == 0 {
			now = lock.Millis(l.at)
			continue
		}
		newest[l.id] = lock.Millis(l.at)
	}
	return now, newest, err
}

var stateTypes = []clickhouse.ColumnNameAndType{
	{Name: "state_id", Type: "String"},
	{Name: "partial_state", Type: "Nullable(String)"},
	{Name: "completed_state", Type: "Nullable(String)"},
	{Name: "updated_at", Type: "DateTime64(3)"},
}

// insertBytes bounds the state text of one INSERT; a row that is larger by
// itself goes alone.
const insertBytes = 16 << 20

// Insert writes rows with the versions that they carry: one INSERT, or a few
// where they are many or large. The text travels in the request's body.
func (db *DB) Insert(ctx context.Context, rows ...Row) error {
	for _, r := range rows {
		if err := checkIDs(r.ID); err != nil {
			return err
		}
	}
	s, err := db.ready(ctx)
	if err != nil {
		return err
	}
	text := "INSERT INTO " + db.names.State() + " (" + stateFields + ")"
	for len(rows) > 0 {
		n := Batch(rows, len(rows))
		err := db.insert(ctx, s, forInsert, text, stateTypes, func(b driver.Batch) error {
			for _, r := range rows[:n] {
				if err := b.Append(r.ID, nullable(r.Partial), nullable(r.Completed), r.UpdatedAt.Time()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// Batch gives how many of the rows, of the first most, go into one INSERT.
func Batch(rows []Row, most int) int {
	n, size := 0, 0
	for n < min(len(rows), most) && (n == 0 || size+rows[n].size() <= insertBytes) {
		size += rows[n].size()
		n++
	}
	return n
}

func (r Row) size() int { return len(r.ID) + len(r.Partial) + len(r.Completed) + 16 }

func nullable(text []byte) any {
	if text == nil {
		return nil
	}
	return text
}

// Archive copies the rows that show of these ids into the history, before
// something replaces them. reason says what (update, set, delete, clear_all,
// import, rollback), by says who. Without a history table it does nothing.
func (db *DB) Archive(ctx context.Context, reason, by string, ids ...string) error {
	if err := checkIDs(ids...); err != nil {
		return err
	}
	s, err := db.ready(ctx)
	if err != nil {
		return err
	}
	for _, piece := range chunks(ids) {
		if err := db.archive(ctx, s, reason, by, piece); err != nil {
			return err
		}
	}
	return nil
}

// archive copies the rows of these ids, or all rows when there are none.
func (db *DB) archive(ctx context.Context, s *server, reason, by string, ids []string) error {
	if !s.history {
		return nil
	}
	var v values
	st := statement{text: "INSERT INTO " + db.names.History() + " (" + stateFields + ", archived_by, reason) SELECT " +
		stateFields + ", " + v.text(by) + ", " + v.text(reason) + " FROM " + db.names.State() + " FINAL"}
	if len(ids) > 0 {
		st.text += " WHERE " + v.ids(ids)
	}
	st.args = v
	return db.execute(ctx, s, forInsert, st)
}

// IDs yields the ids of states that match the fnmatch pattern ("" for all), in
// the order of their bytes.
func (db *DB) IDs(ctx context.Context, pattern string) iter.Seq2[string, error] {
	p := glob.Compile(pattern)
	return stream(ctx, db, source[string]{
		statement: func(after string) statement {
			var v values
			// The inner SELECT names all columns, which costs nothing, so that
			// another table of that name is not taken for one without states.
			text := "SELECT DISTINCT state_id FROM (SELECT " + rowColumns + " FROM " + db.names.State() +
				where(patternCondition(&v, p), afterCondition(&v, after)) + ") ORDER BY state_id"
			return statement{text: text, args: v}
		},
		scan:    func(rows driver.Rows) (id string, err error) { err = rows.Scan(&id); return id, err },
		key:     func(id string) string { return id },
		keep:    p.Match,
		purpose: forRead,
	})
}

// Rows yields the rows that show and whose ids match, ordered by id. Few are
// in memory at a time.
func (db *DB) Rows(ctx context.Context, pattern string) iter.Seq2[Row, error] {
	p := glob.Compile(pattern)
	return stream(ctx, db, source[Row]{
		statement: func(after string) statement {
			var v values
			text := "SELECT " + rowColumns + " FROM " + db.names.State() + " FINAL" + where(patternCondition(&v, p), afterCondition(&v, after)) +
				" ORDER BY state_id"
			return statement{text: text, args: v}
		},
		scan:    scanRow,
		key:     func(r Row) string { return r.ID },
		keep:    p.Match,
		purpose: forStream,
	})
}

// RowsOf yields the rows that show of these ids, as many as exist, in no
// promised order.
func (db *DB) RowsOf(ctx context.Context, ids []string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := checkIDs(ids...); err != nil {
			yield(Row{}, err)
			return
		}
		for _, piece := range chunks(ids) {
			for r, err := range stream(ctx, db, db.rowsOf(piece)) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

func (db *DB) rowsOf(ids []string) source[Row] {
	p := forStream
	if len(ids) == 1 {
		p = forRead
	}
	return source[Row]{
		statement: func(after string) statement {
			var v values
			text := "SELECT " + rowColumns + " FROM " + db.names.State() + " FINAL" + where(v.ids(ids), afterCondition(&v, after)) +
				" ORDER BY state_id"
			return statement{text: text, args: v}
		},
		scan:    scanRow,
		key:     func(r Row) string { return r.ID },
		purpose: p,
	}
}
