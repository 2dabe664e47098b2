package clickhouse

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// roundTripper stands between clickhouse-go and the HTTP transport, for what
// clickhouse-go does not do itself:
//
//   - it recognises a web page, which would be read as a broken result;
//   - it asks the opening question of each pooled connection (name, version,
//     revision, time zone) only once for all of them;
//   - it logs a user without a password in as such: over TLS clickhouse-go
//     takes him for one with a certificate.
type roundTripper struct {
	next         http.RoundTripper
	passwordless bool

	mu    sync.Mutex
	hello *helloAnswer // nil until known, and after any failure
}

// helloQuery is what clickhouse-go asks on each new HTTP connection.
const helloQuery = "SELECT displayName(), version(), revision(), timezone()"

type helloAnswer struct {
	header http.Header
	body   []byte
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.passwordless && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context()) // a RoundTripper must not change its request
		req.Header.Del("X-ClickHouse-SSL-Certificate-Auth")
	}
	hello := isHello(req)
	if hello {
		if known := t.known(); known != nil {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return known.response(req), nil
		}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		t.learn(nil)
		return nil, err
	}
	if err := webPage(resp); err != nil {
		_ = resp.Body.Close()
		t.learn(nil)
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		// A server's refusal says nothing about who it is; anything else may
		// mean that another server answers by now.
		if resp.Header.Get("X-ClickHouse-Exception-Code") == "" {
			t.learn(nil)
		}
		return resp, nil
	}
	if hello {
		return t.keep(req, resp)
	}
	return resp, nil
}

func isHello(req *http.Request) bool {
	if req.ContentLength != int64(len(helloQuery)) || req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return err == nil && string(text) == helloQuery
}

func (t *roundTripper) known() *helloAnswer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hello
}

func (t *roundTripper) learn(h *helloAnswer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hello = h
}

func (t *roundTripper) keep(req *http.Request, resp *http.Response) (*http.Response, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	h := &helloAnswer{header: resp.Header, body: body}
	t.learn(h)
	return h.response(req), nil
}

func (h *helloAnswer) response(req *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        h.header.Clone(),
		Body:          io.NopCloser(bytes.NewReader(h.body)),
		ContentLength: int64(len(h.body)),
		Request:       req,
	}
}

// pageError is an answer that no ClickHouse gives: a web page, of a proxy, a
// login portal, or another program on that port.
type pageError struct {
	status int
	title  string
}

func (e *pageError) Error() string {
	s := fmt.Sprintf("a web page came back instead of an answer (HTTP %d", e.status)
	if e.title != "" {
		s += fmt.Sprintf(", %q", e.title)
	}
	return s + ")"
}

var titleTag = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

func webPage(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "text/html" && kind != "application/xhtml+xml" {
		return nil
	}
	start, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10))
	// ClickHouse itself answers its welcome page only to requests without a
	// query, and its errors as plain text.
	e := &pageError{status: resp.StatusCode}
	if m := titleTag.FindSubmatch(start); m != nil {
		e.title = strings.Join(strings.Fields(string(m[1])), " ")
		if len(e.title) > 80 {
			e.title = e.title[:80]
		}
	}
	return e
}
