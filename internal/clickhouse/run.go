package clickhouse

import (
	"context"
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// run sends a request until it is answered, fails for good, or the time for
// retrying is over. send gets a context that carries the settings.
func (db *DB) run(ctx context.Context, s *server, p purpose, send func(context.Context) error) error {
	return db.runWith(ctx, db.retrying(), s, p, send)
}

func (db *DB) runWith(ctx context.Context, r *retrying, s *server, p purpose, send func(context.Context) error) error {
	for {
		if ctx.Err() != nil {
			return db.interrupted(ctx)
		}
		settings := s.settings(p, db.cfg, &db.left)
		if r.token == nil {
			r.token = settings["insert_deduplication_token"]
		} else if _, ok := settings["insert_deduplication_token"]; ok {
			settings["insert_deduplication_token"] = r.token // a repetition is the same insert
		}
		if db.transport != nil && p != forProbe && !p.reads() {
			// Then the answer's status says how the statement ended, not how
			// it began. (It is no setting, but travels as one.)
			if settings == nil {
				settings = clickhouse.Settings{}
			}
			settings["wait_end_of_query"] = "1"
		}
		leave, err := db.places.take(ctx, p)
		if err != nil {
			return db.interrupted(ctx)
		}
		err = send(clickhouse.Context(noDeadline{ctx}, clickhouse.WithSettings(settings)))
		leave()
		if err == nil {
			db.toldWait.Store(false)
			return nil
		}
		failure := db.explain(ctx, err)
		if s != nil && outdated(failure) {
			db.server.CompareAndSwap(s, nil) // the next call looks anew
		}
		if p.reads() && settingRefused(failure) && len(settings) > 0 {
			var x *clickhouse.Exception
			message := failure.Reason
			if errors.As(err, &x) {
				message = x.Message
			}
			if db.left.refused(message, settings) {
				continue
			}
		}
		if failure.cut && db.transport != nil {
			db.transport.CloseIdleConnections() // likely cut as well: start anew
		}
		if !r.again(ctx, failure) {
			if ctx.Err() != nil && failure.passing {
				return db.interrupted(ctx)
			}
			return failure
		}
	}
}

func settingRefused(e *Error) bool {
	return e.Code == codeReadOnly || e.Code == codeConstraint || e.Code == codeUnknownSetting
}

// outdated says that the server is not what it was when it was looked at: its
// tables were dropped, or another version runs.
func outdated(e *Error) bool {
	return e.Code == codeUnknownTable || e.Code == codeUnknownDatabase || e.Code == codeUnknownSetting
}

// execute runs a statement that gives no rows.
func (db *DB) execute(ctx context.Context, s *server, p purpose, st statement) error {
	return db.run(ctx, s, p, func(ctx context.Context) error {
		return db.conn.Exec(ctx, st.text, st.args...)
	})
}

// collect runs a SELECT and gives its rows; a repetition starts anew.
func collect[T any](ctx context.Context, db *DB, s *server, p purpose, st statement, scan func(driver.Rows) (T, error)) ([]T, error) {
	var out []T
	err := db.run(ctx, s, p, func(ctx context.Context) error {
		out = nil
		rows, err := db.conn.Query(ctx, st.text, st.args...)
		if err != nil {
			return err
		}
		if err := db.firstAnswer(s); err != nil {
			_ = rows.Close()
			return err
		}
		for rows.Next() {
			v, err := scan(rows)
			if err != nil {
				_ = rows.Close()
				return err
			}
			out = append(out, v)
		}
		return errors.Join(rows.Close(), rows.Err())
	})
	return out, err
}

// insert runs an INSERT whose rows travel in the request's body. The columns'
// types are told, or clickhouse-go would ask the server for them each time.
func (db *DB) insert(ctx context.Context, s *server, p purpose, text string, columns []clickhouse.ColumnNameAndType, fill func(driver.Batch) error) error {
	return db.run(ctx, s, p, func(ctx context.Context) error {
		batch, err := db.conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithColumnNamesAndTypes(columns)), text)
		if err != nil {
			return err
		}
		if err := fill(batch); err != nil {
			_ = batch.Abort()
			return err
		}
		return batch.Send()
	})
}
