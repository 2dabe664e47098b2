package chstate_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// Cases from the field: connections and servers in trouble, through the
// library. docs/cases.md says what each one is.

// proxied gives options that lead through a proxy, and the proxy.
func proxied(t testing.TB) (chstate.Options, *faultproxy.Proxy) {
	t.Helper()
	p := faultproxy.Start(chtest.Target(t).URL())
	t.Cleanup(p.Close)
	o := options(t)
	o.Host, o.Port = p.Address()
	o.Secure = false
	return o, p
}

// logged gives options that log into a buffer.
func logged(o chstate.Options) (chstate.Options, *chtest.Log) {
	var b chtest.Log
	o.Logger = slog.New(slog.NewTextHandler(&b, nil))
	return o, &b
}

func wantError(t testing.TB, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q is not in: %v", p, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("several lines: %v", err)
	}
}

func aState(v int) chstate.State {
	return chstate.State{ID: "a", Completed: raw(fmt.Sprintf(`{"v":%d}`, v))}
}

// N02: a service that wakes up: its first answer comes late, or is "503", and
// one line is said about it. The lock is not asked for before it is awake.
func TestN02ServiceWakesUp(t *testing.T) {
	for name, fault := range map[string]faultproxy.Fault{
		"late": faultproxy.When("hello", faultproxy.Times(1, faultproxy.Delay(3*time.Second, nil))),
		"503": faultproxy.Times(2, faultproxy.Any(
			faultproxy.Delay(1500*time.Millisecond, faultproxy.Status(503, "upstream unavailable")))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, p := proxied(t)
			o, log := logged(o)
			o.ConnectTimeout = time.Second // bounds connecting, not answering
			s := open(t, o)
			p.On(fault)
			start := time.Now()
			h, err := s.Lock(t.Context(), "a")
			must(t, err)
			defer h.Release()
			if time.Since(start) < 3*time.Second {
				t.Error("nobody waited")
			}
			locks, err := s.LocksOf(t.Context(), "a")
			must(t, err)
			if len(locks) != 1 || locks[0].Now.Sub(locks[0].Seen) > 2*time.Second {
				t.Errorf("the lock's age counts the waking: %+v", locks)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "waiting for ClickHouse") {
				t.Errorf("logged %d lines: %s", n, log)
			}
		})
	}
}

// N03: ports and TLS mixed up.
func TestN03PortsMixedUp(t *testing.T) {
	plain := chtest.Target(t)
	tls := httptest.NewUnstartedServer(nil)
	tls.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	tls.StartTLS()
	defer tls.Close()
	native, err := faultproxy.Listen(faultproxy.NativePort)
	must(t, err)
	defer native.Close()
	port := func(a net.Addr) int { return a.(*net.TCPAddr).Port }
	for name, c := range map[string]struct {
		port   int
		secure bool
		parts  []string
	}{
		"TLS to a plain port":      {plain.Port, true, []string{"does not speak TLS", "secure=false"}},
		"plain to a TLS port":      {port(tls.Listener.Addr()), false, []string{"secure=true"}},
		"HTTP to the native port":  {port(native.Addr()), false, []string{"native protocol", "8123"}},
		"HTTPS to the native port": {port(native.Addr()), true, []string{"protocol=http with secure=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			if plain.Secure && c.port == plain.Port {
				t.Log("the server at CH_TEST_URI has TLS: there is nothing to mix up")
				return
			}
			o := options(t)
			o.Host, o.Port, o.Secure, o.TLS.SkipVerify, o.Lock.Wait = "127.0.0.1", c.port, c.secure, true, 100*time.Millisecond
			_, err := open(t, o).Get(t.Context(), "a")
			wantError(t, err, chstate.ErrConnect, c.parts...)
		})
	}
}

// N10: a proxy that fails is named.
func TestN10Proxy(t *testing.T) {
	o, p := proxied(t)
	o.HTTPProxy = "http://proxyuser:s3cret@" + p.Listener.Addr().String()
	o.Host, o.Port = "clickhouse.invalid", 8123 // known to the proxy alone
	s := open(t, o)
	must(t, s.Set(t.Context(), aState(1)))
	wantState(t, s, "a", `{}`, `{"v":1}`)
	p.On(faultproxy.Page(502, "Bad Gateway"))
	_, err := s.Get(t.Context(), "a")
	wantError(t, err, chstate.ErrConnect, "proxy http://127.0.0.1", "NO_PROXY")
	if strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

// N11: a connection is cut when it is used again after a pause.
func TestN11ConnectionsThatIdled(t *testing.T) {
	t.Parallel()
	o, p := proxied(t)
	o, log := logged(o)
	o.Lock.Linger = -1 // no renewal between the updates
	s := open(t, o)
	must(t, s.Prepare(t.Context()))
	p.On(faultproxy.Idle(200 * time.Millisecond))
	for i := range 4 {
		time.Sleep(400 * time.Millisecond)
		must(t, s.Update(t.Context(), aState(i)))
		wantState(t, s, "a", `{}`, fmt.Sprintf(`{"v":%d}`, i))
	}
	if len(log.String()) > 0 {
		t.Errorf("logged: %s", log)
	}
}

// N16, N17: failures that pass are waited out, in each kind of call, and those
// that stay are explained in bounded time.
func TestN16N17FailuresThatPass(t *testing.T) {
	for name, fault := range map[string]faultproxy.Fault{
		"242": faultproxy.Code(242), "225": faultproxy.Code(225), "999": faultproxy.Code(999), "252": faultproxy.Code(252),
		"503": faultproxy.Status(503, ""), "page": faultproxy.Page(503, "Down"), "cut": faultproxy.Cut, "cut after": faultproxy.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, p := proxied(t)
			o.Lock.Wait = time.Second
			s := open(t, o)
			must(t, s.Update(t.Context(), aState(1)))
			for _, kind := range []string{"INSERT", "SELECT", "INSERT"} {
				p.On(faultproxy.When(kind, faultproxy.Times(2, fault)))
				must(t, s.Update(t.Context(), aState(2)))
				wantState(t, s, "a", `{}`, `{"v":2}`)
			}
			p.On(fault)
			start := time.Now()
			err := s.Set(t.Context(), chstate.State{ID: "b", Completed: raw(`{}`)})
			if err == nil || time.Since(start) > 4*time.Second {
				t.Errorf("after %s: %v", time.Since(start), err)
			}
			if len(name) == 3 && name != "cut" && !strings.Contains(fmt.Sprint(err), name) {
				t.Errorf("%s is not named: %v", name, err)
			}
			p.On(nil)
		})
	}
}

// N17: very many updates of one id leave few parts behind.
func TestN17ManyUpdates(t *testing.T) {
	t.Parallel()
	o := options(t)
	s := open(t, o)
	for i := range 2000 {
		must(t, s.Update(t.Context(), aState(i)))
	}
	wantState(t, s, "a", `{}`, `{"v":1999}`)
	for _, table := range []string{"state", "state_lock", "state_history"} {
		n := 0
		_, err := fmt.Sscan(chtest.SQL(t, fmt.Sprintf("SELECT count() FROM system.parts WHERE database = '%s' AND table = '%s' AND active", o.Schema, table)), &n)
		must(t, err)
		t.Logf("%s has %d parts", table, n)
		if n > 300 { // a server delays inserts at 1000 in a partition and refuses them at 3000
			t.Errorf("%s has %d parts", table, n)
		}
	}
}

// R08: a DELETE whose replicas are not all there is believed by its effect, and
// the lock is free afterwards.
func TestR08UnfinishedDelete(t *testing.T) {
	o, p := proxied(t)
	s := open(t, o)
	must(t, s.Update(t.Context(), aState(1)))
	p.On(faultproxy.When("DELETE", faultproxy.ExceptionAfter(341)))
	must(t, s.Delete(t.Context(), "a"))
	if _, err := s.Get(t.Context(), "a"); !errors.Is(err, chstate.ErrNoState) {
		t.Errorf("got %v", err)
	}
	must(t, s.Close())
	o.Lock.Wait = 100 * time.Millisecond
	must(t, open(t, o).Update(t.Context(), aState(2)))
}
