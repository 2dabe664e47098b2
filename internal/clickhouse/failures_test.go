package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// TestN16 is the field case N16 with its kin: failures that pass by themselves
// are waited out, the same row is sent again, and what does not pass is
// explained in bounded time.
func TestN16(t *testing.T) {
	for _, c := range []struct {
		name   string
		fail   func(http.ResponseWriter) bool
		reason string
	}{
		{"242", func(w http.ResponseWriter) bool {
			return exception(w, 242, "TABLE_IS_READ_ONLY", "Table is in readonly mode since table metadata was not found in zookeeper")
		}, "code 242 TABLE_IS_READ_ONLY"},
		{"225", func(w http.ResponseWriter) bool { return exception(w, 225, "NO_ZOOKEEPER", "No ZooKeeper session") }, "code 225 NO_ZOOKEEPER"},
		{"999", func(w http.ResponseWriter) bool { return exception(w, 999, "KEEPER_EXCEPTION", "Session expired") }, "code 999 KEEPER_EXCEPTION"},
		{"252", func(w http.ResponseWriter) bool { return exception(w, 252, "TOO_MANY_PARTS", "Too many parts (3000)") }, "code 252 TOO_MANY_PARTS"},
		{"285", func(w http.ResponseWriter) bool { return exception(w, 285, "TOO_FEW_LIVE_REPLICAS", "1 of 2") }, "code 285"},
		{"286", func(w http.ResponseWriter) bool {
			return exception(w, 286, "UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE", "Quorum for previous write has not been satisfied yet")
		}, "code 286"},
		{"289", func(w http.ResponseWriter) bool { return exception(w, 289, "REPLICA_IS_NOT_IN_QUORUM", "x") }, "code 289"},
		{"503", func(w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "upstream unavailable")
			return true
		}, "HTTP 503"},
		{"503 page", func(w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "<html><title>Service Temporarily Unavailable</title></html>")
			return true
		}, "HTTP 503"},
		{"cut", cut, "the connection was cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			ctx := ctxFor(t)
			w, cfg := newWire(t)
			cfg.RetryFor = time.Second
			db := openWith(t, cfg)
			if err := db.Prepare(ctx); err != nil {
				t.Fatal(err)
			}
			var left atomic.Int32 // how many requests fail from here on; all when negative
			w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
				if r.Kind() == "hello" || left.Load() == 0 {
					return false
				}
				left.Add(-1)
				return c.fail(out)
			})
			left.Store(2)
			if err := db.Insert(ctx, Row{ID: "a", Completed: []byte(`{}`), UpdatedAt: 77}); err != nil {
				t.Fatal(err)
			}
			left.Store(2)
			if row, found, err := db.Get(ctx, "a"); err != nil || !found || row.UpdatedAt != 77 {
				t.Fatal(row, found, err)
			}
			left.Store(2)
			if err := db.LockLog().Append(ctx, "a", lockRec(1)); err != nil {
				t.Fatal(err)
			}
			left.Store(-1)
			start := time.Now()
			wantPassing(t, db.Insert(ctx, Row{ID: "a", UpdatedAt: 78}), c.reason)
			if took := time.Since(start); took > cfg.RetryFor+3*time.Second {
				t.Errorf("given up after %s", took)
			}
		})
	}
}

func wantPassing(t *testing.T, err error, parts ...string) {
	t.Helper()
	e := explained(err)
	if e == nil || (e.Kind != Busy && e.Kind != Connect) {
		t.Fatalf("%v", err)
	}
	wantKind(t, err, e.Kind, parts...)
}

// TestLostAnswerIsTheSameWrite: the insert arrives, its answer does not. The
// repetition is the same row, and the row that shows is that one.
func TestLostAnswerIsTheSameWrite(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	db := openWith(t, cfg)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	target := chtest.Target(t)
	w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
		lost := false
		if r.Kind() == "INSERT" {
			once.Do(func() {
				lost = true
				// What a server does that dies after having stored it.
				_, err := target.Do("INSERT INTO " + db.names.State() + " VALUES ('a', NULL, '{}', fromUnixTimestamp64Milli(toInt64(77)))")
				if err != nil {
					t.Error(err)
				}
			})
		}
		return lost && cut(out)
	})
	if err := db.Insert(ctx, Row{ID: "a", Completed: []byte(`{}`), UpdatedAt: 77}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for r, err := range db.Rows(ctx, "") {
		if err != nil || r.UpdatedAt != 77 {
			t.Fatal(r, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestN11 is the field case N11: a connection that the server has closed while
// it idled costs one silent reconnect.
func TestN11(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	var logged chtest.Log
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	cfg.RetryFor = 0 // no time for retrying at all
	db := openWith(t, cfg)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w.CloseClientConnections()
		if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 5}); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		w.CloseClientConnections()
		if _, _, err := db.Get(ctx, "a"); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if len(logged.String()) > 0 {
		t.Errorf("logged: %s", logged.String())
	}
}

// TestN02 is the field case N02, in small: an idle service whose first answer
// takes long is waited for, with one line.
func TestN02(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	cfg.ConnectTimeout = time.Second // bounds connecting, not answering
	var logged chtest.Log
	var slept atomic.Bool
	slept.Store(true)
	w.On(func(_ http.ResponseWriter, r faultproxy.Request) bool {
		if r.Kind() == "hello" && slept.CompareAndSwap(false, true) {
			time.Sleep(noticeAfter + time.Second)
		}
		return false
	})
	if err := openWith(t, cfg).Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	slept.Store(false)
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	db := openWith(t, cfg)
	if _, _, err := db.Get(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(logged.String(), "\n"); n != 1 || !strings.Contains(logged.String(), "waiting for ClickHouse") {
		t.Errorf("logged %d lines: %s", n, logged.String())
	}
}

// TestOneWaitIsToldOnce, also when a look at the server and a read wait side by
// side, as in the add-on's program when it starts; and the next one is told again.
func TestOneWaitIsToldOnce(t *testing.T) {
	t.Parallel() // it waits for the most part
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	makeTables(t, cfg)
	cfg.RetryFor = 20 * time.Second
	var logged chtest.Log
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	db := openWith(t, cfg)
	for n := 1; n <= 2; n++ {
		until := time.Now().Add(noticeAfter + 1500*time.Millisecond)
		w.On(func(out http.ResponseWriter, _ faultproxy.Request) bool {
			return time.Now().Before(until) && exception(out, 242, "TABLE_IS_READ_ONLY", "Table is in readonly mode")
		})
		var both errgroup.Group
		both.Go(func() error { return db.Warm(ctx) })
		both.Go(func() error { _, _, err := db.Get(ctx, "a"); return err })
		if err := both.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(logged.String(), "waiting for ClickHouse"); got != n {
			t.Errorf("%d waits were told %d times: %s", n, got, logged.String())
		}
		db.server.Store(nil)
	}
}

// TestLongRetryIsToldOnce: one line when it takes longer than 2 s.
func TestLongRetryIsToldOnce(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	cfg.RetryFor = 20 * time.Second
	var logged chtest.Log
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	db := openWith(t, cfg)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(3500 * time.Millisecond)
	w.On(func(out http.ResponseWriter, _ faultproxy.Request) bool {
		return time.Now().Before(until) && exception(out, 242, "TABLE_IS_READ_ONLY", "Table is in readonly mode")
	})
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(logged.String(), "\n"); n != 1 || !strings.Contains(logged.String(), "TABLE_IS_READ_ONLY") {
		t.Errorf("logged %d lines: %s", n, logged.String())
	}
}

// TestTheContextBoundsRetries: neither a deadline nor a cancellation is slept through.
func TestTheContextBoundsRetries(t *testing.T) {
	w, cfg := newWire(t)
	cfg.RetryFor = time.Hour
	db := openWith(t, cfg)
	if err := db.Prepare(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	w.On(func(out http.ResponseWriter, _ faultproxy.Request) bool {
		return exception(out, 242, "TABLE_IS_READ_ONLY", "Table is in readonly mode")
	})
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	wantPassing(t, db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}), "242")
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestStreamGoesOnAfterACut: an answer that ends in the middle is taken up
// after the last row that came.
func TestStreamGoesOnAfterACut(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	db := openWith(t, cfg)
	const n = 2000
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{ID: fmt.Sprintf("id-%05d", i), Completed: bytes.Repeat([]byte("x"), 1000), UpdatedAt: 10}
	}
	if err := db.Insert(ctx, rows...); err != nil {
		t.Fatal(err)
	}
	cuts := 3
	w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
		if r.Kind() != "SELECT" || cuts == 0 {
			return false
		}
		cuts--
		return faultproxy.CutHalfway(out, r)
	})
	i := 0
	for r, err := range db.Rows(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		if r.ID != rows[i].ID {
			t.Fatalf("row %d is %s", i, r.ID)
		}
		i++
	}
	if i != n || cuts != 0 {
		t.Errorf("%d rows, %d cuts left", i, cuts)
	}
}

// TestPagesAreNoAnswer: a web page is recognised, and never read as "no state".
func TestPagesAreNoAnswer(t *testing.T) {
	for _, c := range []struct {
		status int
		kind   string
		body   string
		parts  []string
	}{
		{200, "text/html; charset=utf-8", "<!DOCTYPE html><html><head><title>Sign  in\nto Wi-Fi</title></head></html>", []string{"web page", `"Sign in to Wi-Fi"`, "proxy_path"}},
		{200, "text/html", "", []string{"web page"}},
		{404, "text/html", "<html><title>404 Not Found</title></html>", []string{"HTTP 404", "404 Not Found"}},
		{502, "text/html", "<html><title>Bad Gateway</title></html>", []string{"HTTP 502", "Bad Gateway"}},
		{404, "application/json", `{"error":"no route"}`, []string{"HTTP 404", "no route", "not ClickHouse's HTTP interface"}},
		{200, "application/json", `{"ok":true}`, []string{"cannot be read", "HTTP interface"}},
		{200, "text/plain", "Ok.\n", []string{"cannot be read"}},
		{401, "text/plain", "no", []string{"HTTP 401", "user"}},
		{400, "text/plain", "The plain HTTP request was sent to HTTPS port", []string{"secure=true"}},
		{400, "text/plain", "Port 9000 is for clickhouse-client program\r\nYou must use port 8123 for HTTP.\r\n", []string{"native protocol", "8123"}},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		cfg := testConfig(chtest.Server{User: "etl", Password: "s3cret"}, "meltano")
		cfg.Host, cfg.Port, cfg.Secure = hostPort(t, srv.URL)
		_, found, err := openWith(t, cfg).Get(ctxFor(t), "a")
		if found || err == nil {
			t.Errorf("%d %s: found %t, %v", c.status, c.body, found, err)
			continue
		}
		kind := Connect
		if c.status == 401 {
			kind = Login
		}
		wantKind(t, err, kind, append(c.parts, "http://127.0.0.1:")...)
		srv.Close()
	}
}

func TestClosedStore(t *testing.T) {
	db, err := Open(testConfig(chtest.Target(t), chtest.Schema(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = db.Get(ctxFor(t), "a")
	wantKind(t, err, Server, "closed")
}

// TestNobodyListens: refused, and soon.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	for _, protocol := range []string{"http", "native"} {
		cfg := testConfig(chtest.Server{Host: "127.0.0.1", Port: port, User: "etl", Password: "s3cret"}, "meltano")
		cfg.Protocol, cfg.RetryFor, cfg.Database = protocol, 300*time.Millisecond, "analytics"
		start := time.Now()
		_, _, err := openWith(t, cfg).Get(ctxFor(t), "a")
		wantKind(t, err, Connect, "connection refused", fmt.Sprintf("%s://127.0.0.1:%d (database analytics)", protocol, port), "check that the server is running, and that this is its port")
		if text := err.Error(); strings.HasSuffix(text, "?") {
			t.Errorf("Meltano will put a full stop behind: %s", text)
		}
		if time.Since(start) > 2*time.Second {
			t.Error("given up late")
		}
	}
	cfg := testConfig(chtest.Server{Host: "no-such-host.invalid", Port: 8123}, "meltano")
	_, _, err = openWith(t, cfg).Get(ctxFor(t), "a")
	wantKind(t, err, Connect, `"no-such-host.invalid"`)
}

// TestOneWaitForAll: who waits for a connection that then fails is not made to
// wait as long again; a later call tries anew.
func TestOneWaitForAll(t *testing.T) {
	w, cfg := newWire(t)
	cfg.RetryFor = 700 * time.Millisecond
	w.On(faultproxy.Any(faultproxy.Status(503, "upstream unavailable")))
	db := openWith(t, cfg)
	first := make(chan error, 1)
	start := time.Now()
	go func() { first <- db.Prepare(t.Context()) }()
	time.Sleep(100 * time.Millisecond)
	if err := db.Prepare(t.Context()); err == nil {
		t.Error("connected")
	}
	if err := <-first; err == nil {
		t.Error("connected")
	}
	if took := time.Since(start); took > 2*cfg.RetryFor {
		t.Errorf("two callers at once waited %s", took)
	}
	w.On(nil)
	if err := db.Prepare(t.Context()); err != nil {
		t.Errorf("a later call: %v", err)
	}
}
