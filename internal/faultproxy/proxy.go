// Package faultproxy stands between a client and a ClickHouse server, for
// tests: it records each request, and may answer some of them itself, as a
// server, a proxy or a network in trouble would.
//
// What it does is scripted with [Proxy.On]: a [Fault] looks at a request and
// either answers it or leaves it to the real server. Faults are built of each
// other: When("INSERT", Times(2, Cut)) cuts the first two INSERTs before
// the server has seen them.
package faultproxy

import (
	"bytes"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Proxy is a running proxy. It also answers a client that takes it for an
// HTTP proxy, for whatever host it is asked.
type Proxy struct {
	*httptest.Server
	forward *http.Transport

	mu       sync.Mutex
	target   string
	requests []Request
	record   bool
	fault    Fault
}

// Request is one request as it came.
type Request struct {
	Text   string // the statement, from URL or body
	Params url.Values
	Header http.Header
	Body   []byte
	Client string // the client's address: one for each connection

	proxy *Proxy
}

// Fault looks at a request, and says whether it has answered it; if not, the
// real server does.
type Fault func(http.ResponseWriter, Request) bool

// Start starts a proxy before the server at target ("http://host:port"), on a
// free port of 127.0.0.1. It is closed with Close.
func Start(target string) *Proxy {
	p := &Proxy{
		target: target,
		record: true,
		// Any certificate is trusted, for tests make their own. No connection
		// is kept, so that none outlives the test.
		forward: &http.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // test certificates
			DisableCompression: true,
			DisableKeepAlives:  true,
		},
	}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	return p
}

// Address gives the host and the port on which the proxy listens.
func (p *Proxy) Address() (host string, port int) {
	a := p.Listener.Addr().(*net.TCPAddr)
	return a.IP.String(), a.Port
}

// On sets what the proxy does with each request from now on; nil relays all.
func (p *Proxy) On(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// Record says whether requests are kept for Take; they are, unless told otherwise.
func (p *Proxy) Record(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record, p.requests = on, nil
}

// Take gives the requests since the last Take.
func (p *Proxy) Take() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.requests
	p.requests = nil
	return out
}

// Kinds gives the kinds of the requests since the last Take, in one line.
func (p *Proxy) Kinds() string {
	var kinds []string
	for _, r := range p.Take() {
		kinds = append(kinds, r.Kind())
	}
	return strings.Join(kinds, " ")
}

func (p *Proxy) serve(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r := Request{Params: in.URL.Query(), Header: in.Header, Body: body, Client: in.RemoteAddr, proxy: p}
	if r.Text = r.Params.Get("query"); r.Text == "" {
		r.Text = string(body)
	}
	p.mu.Lock()
	if p.record {
		p.requests = append(p.requests, r)
	}
	fault := p.fault
	p.mu.Unlock()
	r.Params = maps.Clone(r.Params) // what was recorded stays as it came
	if fault != nil && fault(out, r) {
		return
	}
	r.Pass(out)
}

// Pass lets the real server answer the request, with the parameters as they
// are by now. It gives true, as a Fault that has answered does.
func (r Request) Pass(out http.ResponseWriter) bool {
	resp, err := r.Relay()
	if err != nil {
		panic(http.ErrAbortHandler) // as the server itself would be missed
	}
	defer resp.Body.Close()
	for k, v := range resp.Header {
		out.Header()[k] = v
	}
	out.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(out, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	return true
}

// Relay sends the request to the real server and gives its answer.
func (r Request) Relay() (*http.Response, error) {
	u, err := url.Parse(r.proxy.target)
	if err != nil {
		return nil, err
	}
	u.Path, u.RawQuery = "/", r.Params.Encode()
	req, err := http.NewRequest(http.MethodPost, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.Header = r.Header.Clone()
	return r.proxy.forward.RoundTrip(req)
}

// Kind is the statement's first word; "hello" for the question with which
// clickhouse-go opens a connection, "probe" for the look at the server's settings.
func (r Request) Kind() string {
	switch {
	case strings.HasPrefix(r.Text, "SELECT displayName(), version()"):
		return "hello"
	case strings.Contains(r.Text, "system.settings"):
		return "probe"
	}
	return strings.Fields(r.Text + " ?")[0]
}

// Settings gives the settings that the request carries, "name=value" in order:
// its parameters without those that are something else. A deduplication token
// comes without its value.
func (r Request) Settings() []string {
	var out []string
	for name, v := range r.Params {
		switch {
		case name == "query", name == "default_format", name == "client_protocol_version", name == "wait_end_of_query",
			strings.HasPrefix(name, "param_"):
		case name == "insert_deduplication_token":
			out = append(out, name)
		default:
			out = append(out, name+"="+v[0])
		}
	}
	slices.Sort(out)
	return out
}
