package main_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// dial opens a clickhouse-go connection to e over HTTP.
func dial(t *testing.T, e *engine, change ...func(*clickhouse.Options)) driver.Conn {
	t.Helper()
	options := &clickhouse.Options{Addr: []string{e.addr()}, Protocol: clickhouse.HTTP}
	for _, c := range change {
		c(options)
	}
	conn, err := clickhouse.Open(options)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// code is the error code of a ClickHouse exception.
func code(t *testing.T, err error) int32 {
	t.Helper()
	var exception *clickhouse.Exception
	if !errors.As(err, &exception) {
		t.Fatalf("no ClickHouse exception but %v", err)
	}
	return exception.Code
}

func TestClientCompressions(t *testing.T) {
	e := sharedEngine(t)
	ctx := t.Context()
	methods := map[string]*clickhouse.Compression{
		"none":    {Method: clickhouse.CompressionNone},
		"lz4":     {Method: clickhouse.CompressionLZ4},
		"zstd":    {Method: clickhouse.CompressionZSTD, Level: 3},
		"gzip":    {Method: clickhouse.CompressionGZIP, Level: 3},
		"deflate": {Method: clickhouse.CompressionDeflate, Level: 3},
		"br":      {Method: clickhouse.CompressionBrotli, Level: 3},
	}
	for name, compression := range methods {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, e, func(o *clickhouse.Options) { o.Compression = compression })
			table := "compress_" + name
			must(t, conn.Exec(ctx, "CREATE TABLE "+table+" (id UInt64, text String, maybe Nullable(String), at DateTime64(3)) ENGINE = MergeTree ORDER BY id"))
			const rows = 20_000
			batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+table)
			must(t, err)
			at := time.UnixMilli(1_700_000_000_123).UTC()
			for i := range rows {
				text := fmt.Sprintf("row %d: tab\t newline\n zero\x00 quote' back\\slash", i)
				var maybe *string
				if i%2 == 0 {
					maybe = &text
				}
				must(t, batch.Append(uint64(i), text, maybe, at))
			}
			must(t, batch.Send())
			found, err := conn.Query(ctx, "SELECT id, text, maybe, at FROM "+table+" ORDER BY id")
			must(t, err)
			defer found.Close()
			i := 0
			for ; found.Next(); i++ {
				var (
					id    uint64
					text  string
					maybe *string
					when  time.Time
				)
				must(t, found.Scan(&id, &text, &maybe, &when))
				want := fmt.Sprintf("row %d: tab\t newline\n zero\x00 quote' back\\slash", i)
				if id != uint64(i) || text != want || (maybe == nil) != (i%2 == 1) || maybe != nil && *maybe != want || !when.Equal(at) {
					t.Fatalf("row %d came back as %d %q %v %v", i, id, text, maybe, when)
				}
			}
			must(t, found.Err())
			equal(t, "rows", i, rows)
			equal(t, "code of an error", code(t, conn.Exec(ctx, "SELECT * FROM no_such_table")), 60)
			must(t, conn.Exec(ctx, "DROP TABLE "+table+" SYNC"))
		})
	}
}

func TestClientTypes(t *testing.T) {
	conn := dial(t, sharedEngine(t))
	ctx := t.Context()
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	when := time.Date(2024, 7, 1, 12, 30, 0, 0, berlin)
	for _, c := range []struct {
		expression string
		want       any
	}{
		{"toInt8(-5)", int8(-5)},
		{"toUInt64(18446744073709551615)", uint64(18446744073709551615)},
		{"1.5", 1.5},
		{"true", true},
		{"'text'", "text"},
		{"toFixedString('abc', 3)", "abc"},
		{"toDateTime('2024-07-01 12:30:00', 'Europe/Berlin')", when},
		{"toDateTime64('2024-07-01 12:30:00.250', 3, 'Europe/Berlin')", when.Add(250 * time.Millisecond)},
		{"toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')", uuid.MustParse("61f0c404-5cb3-11e7-907b-a6006ad3dba0")},
		{"['a', 'b']", []string{"a", "b"}},
		{"[[1, 2], [], [3]]", [][]uint8{{1, 2}, {}, {3}}},
		{"emptyArrayString()", []string{}},
		{"map('a', 1, 'b', 2)", map[string]uint8{"a": 1, "b": 2}},
		{"toLowCardinality('low')", "low"},
		{"CAST(['x', 'y', 'x'] AS Array(LowCardinality(String)))", []string{"x", "y", "x"}},
		{"CAST(['x', NULL] AS Array(LowCardinality(Nullable(String))))[1]", ptr("x")},
		{"CAST('two' AS Enum8('one' = 1, 'two' = 2))", "two"},
		{"CAST(NULL AS Nullable(Int32))", (*int32)(nil)},
		{"CAST(7 AS Nullable(Int32))", ptr(int32(7))},
		{"tuple(1, 'a')", []any{uint8(1), "a"}},
	} {
		// A column before and one behind show that the end was found.
		rows, err := conn.Query(ctx, "SELECT 'before' AS b, "+c.expression+" AS v, 'behind' AS e FROM numbers(2)")
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		n := 0
		for rows.Next() {
			n++
			var before, behind string
			got := reflect.New(reflect.TypeOf(c.want))
			if err := rows.Scan(&before, got.Interface(), &behind); err != nil {
				t.Errorf("%s: %v", c.expression, err)
				break
			}
			value := got.Elem().Interface()
			if at, ok := value.(time.Time); ok {
				want := c.want.(time.Time)
				if !at.Equal(want) || at.Location().String() != want.Location().String() {
					t.Errorf("%s is %v, not %v", c.expression, at, want)
				}
			} else if !reflect.DeepEqual(value, c.want) {
				t.Errorf("%s is %#v, not %#v", c.expression, value, c.want)
			}
			equal(t, c.expression+", neighbours", before+behind, "beforebehind")
		}
		if err := rows.Err(); err != nil {
			t.Errorf("%s: %v", c.expression, err)
		}
		equal(t, c.expression+", rows", n, 2)
		must(t, rows.Close())
	}
}

func ptr[T any](v T) *T { return &v }

func TestClientParameters(t *testing.T) {
	conn := dial(t, sharedEngine(t))
	ctx := clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{
		"text": `tab\t newline\n quote' back\\slash`, "n": "42", "table": "numbers",
	}))
	var text string
	var n uint32
	must(t, conn.QueryRow(ctx, "SELECT {text:String}, {n:UInt32} FROM system.{table:Identifier} LIMIT 1").Scan(&text, &n))
	equal(t, "text", text, "tab\t newline\n quote' back\\slash")
	equal(t, "number", n, 42)
	// What one request sets is not there in the next.
	equal(t, "code", code(t, conn.Exec(t.Context(), "SELECT {n:UInt32}")), 456)
}

func TestClientExceptions(t *testing.T) {
	conn := dial(t, sharedEngine(t))
	ctx := t.Context()
	must(t, conn.Exec(ctx, "CREATE TABLE exceptions (n UInt8) ENGINE = MergeTree ORDER BY n"))
	for statement, want := range map[string]int32{
		"SELECT * FROM nowhere.at_all":                             81,
		"SELECT * FROM no_such_table":                              60,
		"SELECT no_such_column FROM exceptions":                    47,
		"SELEC 1":                                                  62,
		"SELECT 1; SELECT 2":                                       62,
		"CREATE TABLE exceptions (n UInt8) ENGINE = Memory":        57,
		"SELECT throwIf(1, 'as asked')":                            395,
		"INSERT INTO exceptions VALUES ('not a number')":           6,
		"INSERT INTO exceptions FORMAT JSONEachRow {\"n\": \"x\"}": 27,
		"SELECT 1 SETTINGS no_such_setting = 1":                    115,
		"SELECT 1 INTO OUTFILE '/tmp/chstate-engine-never'":        358,
		"INSERT INTO exceptions FROM INFILE '/etc/hostname'":       78,
	} {
		if err := conn.Exec(ctx, statement); err == nil {
			t.Errorf("%s: no error", statement)
		} else {
			equal(t, statement, code(t, err), want)
		}
	}
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO exceptions")
	must(t, err)
	must(t, batch.Append(uint8(1)))
	must(t, conn.Exec(ctx, "DROP TABLE exceptions SYNC"))
	equal(t, "insert into a dropped table", code(t, batch.Send()), 60)
}

func TestClientExceptionAfterData(t *testing.T) {
	conn := dial(t, sharedEngine(t))
	rows, err := conn.Query(t.Context(), "SELECT number, throwIf(number = 2000000, 'late') FROM numbers(3000000) SETTINGS max_block_size = 65536, max_threads = 1")
	must(t, err)
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	equal(t, "code", code(t, rows.Err()), 395)
	if n == 0 || n > 2_000_000 {
		t.Errorf("%d rows before the exception", n)
	}
}

func TestClientExternalTable(t *testing.T) {
	conn := dial(t, sharedEngine(t))
	table, err := ext.NewTable("ids", ext.Column("id", "UInt64"), ext.Column("name", "String"))
	must(t, err)
	for i := range 3 {
		must(t, table.Append(uint64(i), fmt.Sprintf("line\n%d", i)))
	}
	ctx := clickhouse.Context(t.Context(), clickhouse.WithExternalTable(table), clickhouse.WithParameters(clickhouse.Parameters{"least": "1"}))
	rows, err := conn.Query(ctx, "SELECT id, name FROM ids WHERE id >= {least:UInt64} ORDER BY id")
	must(t, err)
	defer rows.Close()
	var names []string
	for rows.Next() {
		var id uint64
		var name string
		must(t, rows.Scan(&id, &name))
		names = append(names, name)
	}
	must(t, rows.Err())
	equal(t, "names", strings.Join(names, ","), "line\n1,line\n2")
	equal(t, "code afterwards", code(t, conn.Exec(t.Context(), "SELECT * FROM ids")), 60)
}

func TestClientEmptyResult(t *testing.T) {
	conn := dial(t, sharedEngine(t))
	rows, err := conn.Query(t.Context(), "SELECT number FROM numbers(0)")
	must(t, err)
	defer rows.Close()
	if rows.Next() {
		t.Error("a row of nothing")
	}
	must(t, rows.Err())
}

func TestClientAuthentication(t *testing.T) {
	e := start(t, t.TempDir(), []string{"CHSTATE_ENGINE_PASSWORD=s3:cret/ä"}, "--user", "meltano")
	with := func(user, password string) error {
		conn := dial(t, e, func(o *clickhouse.Options) { o.Auth = clickhouse.Auth{Username: user, Password: password} })
		return conn.Ping(t.Context())
	}
	must(t, with("meltano", "s3:cret/ä"))
	equal(t, "wrong password", code(t, with("meltano", "wrong")), 516)
	equal(t, "wrong user", code(t, with("default", "s3:cret/ä")), 516)
	equal(t, "no password", code(t, with("meltano", "")), 516)
}

func TestParallelQueries(t *testing.T) {
	e := sharedEngine(t)
	conn := dial(t, e, func(o *clickhouse.Options) { o.MaxOpenConns = 16 })
	ctx := t.Context()
	must(t, conn.Exec(ctx, "CREATE TABLE parallel (worker UInt8, n UInt32) ENGINE = MergeTree ORDER BY (worker, n)"))
	const workers, each = 12, 15
	var wg sync.WaitGroup
	failures := make(chan error, workers)
	for w := range workers {
		wg.Go(func() { failures <- insertAndRead(ctx, conn, w, each) })
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		must(t, err)
	}
	equal(t, "rows", e.query(t, "SELECT count() FROM parallel"), fmt.Sprint(workers*each))
	// A long query does not hold up a short one.
	slow := make(chan error, 1)
	go func() { slow <- conn.Exec(ctx, "SELECT sleepEachRow(0.5) FROM numbers(3) SETTINGS max_block_size = 1") }()
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	equal(t, "short query", e.query(t, "SELECT 1"), "1")
	if took := time.Since(began); took > time.Second {
		t.Errorf("a short query beside a long one took %v", took)
	}
	must(t, <-slow)
}

func insertAndRead(ctx context.Context, conn driver.Conn, worker, times int) error {
	for i := range times {
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO parallel")
		if err != nil {
			return err
		}
		if err := batch.Append(uint8(worker), uint32(i)); err != nil {
			return err
		}
		if err := batch.Send(); err != nil {
			return err
		}
		var n uint64
		params := clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"w": fmt.Sprint(worker)}))
		if err := conn.QueryRow(params, "SELECT count() FROM parallel WHERE worker = {w:UInt8}").Scan(&n); err != nil {
			return err
		}
		if n != uint64(i+1) {
			return fmt.Errorf("worker %d sees %d rows after %d inserts", worker, n, i+1)
		}
	}
	return nil
}
