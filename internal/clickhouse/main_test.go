package clickhouse

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/chstate/chstate/internal/chtest"
)

func TestMain(m *testing.M) { chtest.Main(m) }

// testConfig is a configuration for a server, with a schema of the test's own.
func testConfig(server chtest.Server, schema string) Config {
	return Config{
		Protocol: "http", Host: server.Host, Port: server.Port, Secure: server.Secure,
		User: server.User, Password: server.Password,
		ConnectTimeout: 5 * time.Second, SendReceiveTimeout: time.Minute,
		Schema: schema, Table: "state", CreateTables: true, HistoryDays: 30,
		RetryFor: 5 * time.Second,
	}
}

// open gives a store that is closed with the test, in a schema of its own.
func open(t testing.TB, change ...func(*Config)) *DB {
	t.Helper()
	cfg := testConfig(chtest.Target(t), chtest.Schema(t))
	for _, c := range change {
		c(&cfg)
	}
	return openWith(t, cfg)
}

func openWith(t testing.TB, cfg Config) *DB {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	db, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func leaks(t *testing.T) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}

func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ctxFor(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
