package clickhouse

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chstate/chstate/internal/chtest"
)

// wire stands between a DB and the real server: it records each request, and
// may answer some of them itself, as a server or a proxy in trouble would.
type wire struct {
	*httptest.Server

	mu        sync.Mutex
	requests  []request
	interfere func(w http.ResponseWriter, r request) bool // true: answered
}

type request struct {
	text   string // the statement, from URL or body
	params url.Values
	header http.Header
	body   []byte
}

// forward trusts the real server, whatever certificate it has. It keeps no
// connection, so that none outlives the test.
var forward = &http.Transport{
	TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
	DisableCompression: true,
	DisableKeepAlives:  true,
}

// relay sends the request to the real server.
func (r request) relay(target chtest.Server) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(target.Host, strconv.Itoa(target.Port)), Path: "/", RawQuery: r.params.Encode()}
	if target.Secure {
		u.Scheme = "https"
	}
	req, err := http.NewRequest(http.MethodPost, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header = r.header.Clone()
	return forward.RoundTrip(req)
}

// kind is the statement's first word, or words.
func (r request) kind() string {
	switch {
	case r.text == helloQuery:
		return "hello"
	case strings.Contains(r.text, "system.settings"):
		return "probe"
	}
	return strings.Fields(r.text + " ?")[0]
}

func newWire(t testing.TB) (*wire, Config) {
	t.Helper()
	target := chtest.Target(t)
	w := &wire{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r := request{params: in.URL.Query(), header: in.Header, body: body}
		if r.text = r.params.Get("query"); r.text == "" {
			r.text = string(body)
		}
		w.mu.Lock()
		w.requests = append(w.requests, r)
		interfere := w.interfere
		w.mu.Unlock()
		if interfere != nil && interfere(out, r) {
			return
		}
		resp, err := r.relay(target)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		for k, v := range resp.Header {
			out.Header()[k] = v
		}
		out.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(out, resp.Body)
	}))
	t.Cleanup(w.Close)
	return w, w.config(t, target)
}

func (w *wire) config(t testing.TB, target chtest.Server) Config {
	cfg := testConfig(target, chtest.SchemaOn(t, target))
	cfg.Host, cfg.Port, cfg.Secure = hostPort(t, w.URL)
	return cfg
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

// on sets what the wire does with each request.
func (w *wire) on(interfere func(http.ResponseWriter, request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interfere = interfere
}

// take gives the requests since the last take.
func (w *wire) take() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.requests
	w.requests = nil
	return out
}

func (w *wire) kinds() string {
	var kinds []string
	for _, r := range w.take() {
		kinds = append(kinds, r.kind())
	}
	return strings.Join(kinds, " ")
}

// exception answers as ClickHouse does when a statement fails.
func exception(w http.ResponseWriter, code int, name, message string) bool {
	w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.WriteHeader(http.StatusInternalServerError)
	fmt.Fprintf(w, "Code: %d. DB::Exception: %s (%s) (version 24.3.2.23 (official build))\n", code, message, name)
	return true
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter) bool { panic(http.ErrAbortHandler) }
