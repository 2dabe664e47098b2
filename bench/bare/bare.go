// Package bare does what the store does with as little as can be done for it:
// one INSERT of a row with clickhouse-go, one SELECT of it. The benchmark
// measures the store beside it.
package bare

import (
	"context"
	"errors"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Table is a state table, reached without the store.
type Table struct {
	conn driver.Conn
	name string
}

// Open gives the table SCHEMA.TABLE on HOST:PORT, reached over HTTP.
func Open(address, user, password, table string) (*Table, error) {
	conn, err := clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP,
		Addr:     []string{address},
		Auth:     clickhouse.Auth{Username: user, Password: password},
		Settings: clickhouse.Settings{"async_insert": 0},
		// As many as the store's: 200 writers must not wait for each other here.
		MaxOpenConns: 256, MaxIdleConns: 256,
	})
	return &Table{conn, table}, err
}

// Create makes the table, with the store's columns and engine.
func (t *Table) Create(ctx context.Context) error {
	return t.conn.Exec(ctx, "CREATE TABLE "+t.name+" (state_id String, partial_state Nullable(String), completed_state Nullable(String),"+
		" updated_at DateTime64(3)) ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id")
}

// Insert inserts one row. The types are told, because the batch would ask for
// them (DESCRIBE TABLE).
func (t *Table) Insert(ctx context.Context, id, text string) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithColumnNamesAndTypes([]clickhouse.ColumnNameAndType{
		{Name: "state_id", Type: "String"},
		{Name: "partial_state", Type: "Nullable(String)"},
		{Name: "completed_state", Type: "Nullable(String)"},
		{Name: "updated_at", Type: "DateTime64(3)"},
	}))
	batch, err := t.conn.PrepareBatch(ctx, "INSERT INTO "+t.name+" (state_id, partial_state, completed_state, updated_at)")
	if err != nil {
		return err
	}
	if err := batch.Append(id, nil, text, time.Now()); err != nil {
		return err
	}
	return batch.Send()
}

// Select reads the row of one id that shows.
func (t *Table) Select(ctx context.Context, id string) error {
	rows, err := t.conn.Query(ctx, "SELECT partial_state, completed_state, updated_at FROM "+t.name+" FINAL WHERE state_id = {id:String}",
		clickhouse.Named("id", id))
	if err != nil {
		return err
	}
	for rows.Next() {
		var partial, completed *string
		var at time.Time
		if err := rows.Scan(&partial, &completed, &at); err != nil {
			return err
		}
	}
	return errors.Join(rows.Close(), rows.Err())
}

// Query runs a statement that gives one number.
func (t *Table) Query(ctx context.Context, statement string) (n uint64, err error) {
	err = t.conn.QueryRow(ctx, statement).Scan(&n)
	return n, err
}

// Exec runs a statement that gives nothing.
func (t *Table) Exec(ctx context.Context, statement string) error { return t.conn.Exec(ctx, statement) }

// Close closes the connections.
func (t *Table) Close() error { return t.conn.Close() }
