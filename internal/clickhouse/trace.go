package clickhouse

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// traced tells a logger each statement and its time. Statements have no
// secrets in them: the login travels apart, and state text in the body.
type traced struct {
	driver.Conn
	log *slog.Logger
}

// tracing gives the connection as it is, unless statements are asked for.
func tracing(conn driver.Conn, log *slog.Logger) driver.Conn {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return conn
	}
	return traced{conn, log}
}

func (t traced) tell(began time.Time, err error, query string, args []any) {
	var b strings.Builder
	fmt.Fprintf(&b, "%.1f ms: %s", float64(time.Since(began).Microseconds())/1000, oneLine(query))
	for _, arg := range args {
		if named, ok := arg.(driver.NamedValue); ok {
			fmt.Fprintf(&b, " [%s: %.80q]", named.Name, fmt.Sprint(named.Value))
		}
	}
	if err != nil {
		b.WriteString(" (failed)")
	}
	t.log.Debug(b.String())
}

// Query is timed up to the first rows; the others may be long in coming.
func (t traced) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	began := time.Now()
	rows, err := t.Conn.Query(ctx, query, args...)
	t.tell(began, err, query, args)
	return rows, err
}

func (t traced) Exec(ctx context.Context, query string, args ...any) error {
	began := time.Now()
	err := t.Conn.Exec(ctx, query, args...)
	t.tell(began, err, query, args)
	return err
}

func (t traced) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	batch, err := t.Conn.PrepareBatch(ctx, query, opts...)
	if err != nil {
		return nil, err
	}
	return tracedBatch{Batch: batch, t: t, query: query}, nil
}

type tracedBatch struct {
	driver.Batch
	t     traced
	query string
}

func (b tracedBatch) Send() error {
	began, rows := time.Now(), b.Rows()
	err := b.Batch.Send()
	b.t.tell(began, err, fmt.Sprintf("%s (%d rows)", b.query, rows), nil)
	return err
}
