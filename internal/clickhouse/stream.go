package clickhouse

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/chstate/chstate/internal/glob"
)

// source is a SELECT ordered by state id, which can be taken up again after
// any id.
type source[T any] struct {
	statement func(after string) statement
	scan      func(driver.Rows) (T, error)
	key       func(T) string
	keep      func(id string) bool // nil keeps all
	purpose   purpose
}

// stream yields the rows as they arrive. When the connection is cut on the
// way, it goes on after the last row that came.
func stream[T any](ctx context.Context, db *DB, src source[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		after, stopped := "", false
		send := func(ctx context.Context, s *server, r *retrying) error {
			st := src.statement(after)
			// Closing rows reads the rest of the answer, however long, unless
			// the request is cancelled first.
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			rows, err := db.conn.Query(ctx, st.text, st.args...)
			if err != nil {
				return err
			}
			if err := db.firstAnswer(s); err != nil {
				cancel()
				_ = rows.Close()
				return err
			}
			for rows.Next() {
				v, err := src.scan(rows)
				if err != nil {
					cancel()
					_ = rows.Close()
					return err
				}
				id := src.key(v)
				if src.keep == nil || src.keep(id) {
					if !yield(v, nil) {
						stopped = true
						cancel()
						_ = rows.Close()
						return nil
					}
				}
				after = id
				r.progress()
			}
			return errors.Join(rows.Close(), rows.Err())
		}
		err := db.read(ctx, db.names.state, func(ctx context.Context, s *server) error {
			r := db.retrying()
			return db.runWith(ctx, r, s, src.purpose, func(ctx context.Context) error { return send(ctx, s, r) })
		})
		if err != nil && !stopped {
			yield(none, err)
		}
	}
}

// where joins conditions, those that are empty left out.
func where(conditions ...string) string {
	var given []string
	for _, c := range conditions {
		if c != "" {
			given = append(given, c)
		}
	}
	if len(given) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(given, " AND ")
}

// afterCondition leaves out what was yielded already, and what somebody stored
// by hand under an empty id, which is nobody's state.
func afterCondition(v *values, after string) string {
	return "state_id > " + v.text(after)
}

// patternCondition gives the ids that may match; glob.Pattern.Match then says
// which do. They differ only for ids that are not valid UTF-8, of which RE2
// has another idea than fnmatch.
func patternCondition(v *values, p glob.Pattern) string {
	if p.Any() {
		return ""
	}
	if id, ok := p.Literal(); ok {
		return "state_id = " + v.text(id)
	}
	prefix, all := p.Prefix()
	var starts string
	if prefix != "" {
		starts = "startsWith(state_id, " + v.text(prefix) + ")"
	}
	if all {
		return starts
	}
	matches := "(match(state_id, " + v.text(p.RE2()) + ") OR NOT isValidUTF8(state_id))"
	if starts == "" {
		return matches
	}
	return starts + " AND " + matches
}
