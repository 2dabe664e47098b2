package clickhouse

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// newWire gives a proxy before the test server, and a configuration that goes
// through it.
func newWire(t testing.TB) (*faultproxy.Proxy, Config) {
	t.Helper()
	target := chtest.Target(t)
	w := faultproxy.Start(target.URL())
	t.Cleanup(w.Close)
	cfg := testConfig(target, chtest.SchemaOn(t, target))
	cfg.Host, cfg.Port, cfg.Secure = hostPort(t, w.URL)
	return w, cfg
}

func hostPort(t testing.TB, address string) (host string, port int, secure bool) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err = strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return u.Hostname(), port, u.Scheme == "https"
}

// exception answers as ClickHouse does when a statement fails.
func exception(w http.ResponseWriter, code int, name, message string) bool {
	return faultproxy.Exception(code, name, message)(w, faultproxy.Request{})
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) bool { return faultproxy.Cut(w, faultproxy.Request{}) }
