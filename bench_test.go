package chstate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/chstate/chstate"
)

// kilobyte is a complete state of about 1 kB.
var kilobyte = raw(`{"singer_state":{"bookmarks":{"s":{"replication_key_value":"2026-01-01","pad":"` + strings.Repeat("x", 920) + `"}}}}`)

// BenchmarkUpdate puts an update within a run beside what it cannot be cheaper
// than: a bare INSERT of the same row with clickhouse-go. The two take turns,
// so that a noisy machine is noisy for both.
func BenchmarkUpdate(b *testing.B) {
	o := options(b)
	s := open(b, o)
	st := chstate.State{ID: "dev:tap-to-target", Completed: kilobyte}
	if err := s.Update(b.Context(), st); err != nil {
		b.Fatal(err)
	}
	insert := floor(b, o)
	var ours, bare time.Duration
	for b.Loop() {
		t := time.Now()
		if err := s.Update(b.Context(), st); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(t)
		t = time.Now()
		insert(b.Context())
		bare += time.Since(t)
	}
	report(b, ours, bare)
}

// BenchmarkLock is an uncontended claim, look and release beside the bare INSERT.
func BenchmarkLock(b *testing.B) {
	o := options(b)
	o.Lock.Linger = -1
	s := open(b, o)
	insert := floor(b, o)
	var ours, bare time.Duration
	n := 0
	for b.Loop() {
		n++
		t := time.Now()
		h, err := s.Lock(b.Context(), fmt.Sprint("id", n))
		if err != nil {
			b.Fatal(err)
		}
		h.Release()
		ours += time.Since(t)
		t = time.Now()
		insert(b.Context())
		bare += time.Since(t)
	}
	report(b, ours, bare)
}

func report(b *testing.B, ours, bare time.Duration) {
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "µs/ours")
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N), "µs/floor")
	b.ReportMetric(float64(ours)/float64(bare), "×floor")
	b.ReportMetric(0, "ns/op") // of both together: says nothing
}

func floor(b *testing.B, o chstate.Options) func(context.Context) {
	b.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP, Addr: []string{fmt.Sprintf("%s:%d", o.Host, o.Port)},
		Auth:     clickhouse.Auth{Username: o.User, Password: o.Password},
		Settings: clickhouse.Settings{"async_insert": 0},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	types := []clickhouse.ColumnNameAndType{
		{Name: "state_id", Type: "String"}, {Name: "partial_state", Type: "Nullable(String)"},
		{Name: "completed_state", Type: "Nullable(String)"}, {Name: "updated_at", Type: "DateTime64(3)"},
	}
	if s := open(b, o); s.Prepare(b.Context()) != nil {
		b.Fatal("no tables")
	}
	statement := fmt.Sprintf("INSERT INTO `%s`.state (state_id, partial_state, completed_state, updated_at)", o.Schema)
	return func(ctx context.Context) {
		batch, err := conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithColumnNamesAndTypes(types)), statement)
		if err != nil {
			b.Fatal(err)
		}
		if err := batch.Append("floor", nil, string(kilobyte), time.Now()); err != nil {
			b.Fatal(err)
		}
		if err := batch.Send(); err != nil {
			b.Fatal(err)
		}
	}
}
