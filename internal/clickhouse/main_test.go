package clickhouse

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
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

// TestNothingIsLeftRunning: neither after work, nor after streams that were
// left early, failures and cancellations.
func TestNothingIsLeftRunning(t *testing.T) {
	w, cfg := newWire(t)
	ignore := goleak.IgnoreCurrent()
	db, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctxFor(t))
	var rows []Row
	for i := range 600 {
		rows = append(rows, Row{ID: strconv.Itoa(i), Completed: make([]byte, 1000), UpdatedAt: 1})
	}
	if err := db.Insert(ctx, rows...); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, err := range db.Rows(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
		return r.Kind() == "INSERT" && exception(out, 62, "SYNTAX_ERROR", "no")
	})
	wantKind(t, db.Insert(ctx, Row{ID: "a", Completed: make([]byte, 5<<20), UpdatedAt: 2}), Server, "62 SYNTAX_ERROR")
	w.On(func(http.ResponseWriter, faultproxy.Request) bool {
		cancel()
		return false
	})
	if _, _, err := db.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	goleak.VerifyNone(t, ignore)
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
