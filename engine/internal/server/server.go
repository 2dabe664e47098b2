// Package server is ClickHouse's HTTP interface in front of the embedded engine.
package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// Server answers HTTP requests.
type Server struct {
	engine   *Engine
	account  Account
	log      *slog.Logger
	spool    *spool
	sessions *sessions
	turns    turns
	running  sync.Map // query ids
}

// New makes a server for the engine, whose data lie in the folder data.
func New(engine *Engine, account Account, data string, log *slog.Logger) (*Server, error) {
	spool, err := newSpool(spoolDir(data))
	if err != nil {
		return nil, err
	}
	return &Server{engine: engine, account: account, log: log, spool: spool, sessions: newSessions(engine), turns: newTurns()}, nil
}

// Close ends the sessions. No request may be running.
func (s *Server) Close() { s.sessions.close() }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	setOwn(h, "Server-Display-Name", s.engine.Host)
	switch {
	case r.Method == http.MethodPost || r.Method == http.MethodPut:
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "This engine takes GET and POST", http.StatusMethodNotAllowed)
		return
	case r.URL.Path == "/ping" || r.URL.Path == "/replicas_status" || r.URL.Path == "/" && r.URL.RawQuery == "":
		h.Set("Content-Type", "text/html; charset=UTF-8")
		_, _ = io.WriteString(w, "Ok.\n")
		return
	case r.URL.Path != "/" && r.URL.Path != "/query":
		http.Error(w, "There is no handle "+r.URL.Path+"\n\nUse / or /ping for health checks.\n\nSend queries from your program with POST method or GET /?query=...", http.StatusNotFound)
		return
	}
	s.query(w, r)
}

// query answers a request that carries a statement.
func (s *Server) query(w http.ResponseWriter, r *http.Request) {
	out := &output{w: w, started: time.Now(), held: &heldBack{spool: s.spool}, tag: exceptionTag()}
	setOwn(w.Header(), "Timezone", s.engine.TimeZone)
	setOwn(w.Header(), "Exception-Tag", out.tag)

	stats, err := s.answer(out, r)
	switch {
	case err == nil:
		if err := out.finish(stats); err != nil {
			s.log.Debug("the answer did not reach the client", "error", err)
		}
	case errors.Is(err, errGone):
		s.log.Debug("the client went away")
		panic(http.ErrAbortHandler)
	default:
		e := asException(err)
		s.log.Debug("query failed", "code", e.Code, "text", e.Text)
		out.fail(e, s.engine.Version)
	}
}

// answer runs the request's statement; its result is in out.
func (s *Server) answer(out *output, r *http.Request) (chdb.Stats, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return chdb.Stats{}, codeBadArguments.errorf("The URL's parameters cannot be read: %v", err)
	}
	if err := s.account.check(r, values); err != nil {
		return chdb.Stats{}, err
	}
	var tables []externalTable
	if isForm(r) {
		if tables, err = readForm(r, values); err != nil {
			return chdb.Stats{}, err
		}
	}
	q, err := parseRequest(r, values, isForm(r))
	if err != nil {
		return chdb.Stats{}, err
	}
	setOwn(out.w.Header(), "Query-Id", q.queryID)
	if _, taken := s.running.LoadOrStore(q.queryID, true); taken {
		return chdb.Stats{}, codeSameQueryID.errorf("Query with id = %s is already running", q.queryID)
	}
	defer s.running.Delete(q.queryID)

	text := io.Reader(http.NoBody)
	if !isForm(r) {
		if text, err = decodeBody(r.Body, r.Header.Get("Content-Encoding")); err != nil {
			return chdb.Stats{}, err
		}
		if q.decompress {
			text = decodeFrames(text)
		}
	}
	s.shape(out, q, r.Header.Get("Accept-Encoding"))
	return s.execute(r.Context(), out, q, tables, values, q.statement(text))
}

// shape sets how the answer is sent.
func (s *Server) shape(out *output, q *request, accept string) {
	out.waitEnd = q.waitEnd
	if zone := q.setting("session_timezone", ""); zone != "" {
		setOwn(out.w.Header(), "Timezone", zone)
	}
	if q.settingOn("enable_http_compression") {
		level, err := strconv.Atoi(q.setting("http_zlib_compression_level", "3"))
		if err != nil {
			level = 3
		}
		var name string
		if name, out.encode = chooseEncoding(accept, level); name != "" {
			out.w.Header().Set("Content-Encoding", name)
		}
	}
	if q.compress {
		level, err := strconv.Atoi(q.setting("network_zstd_compression_level", "1"))
		if err != nil {
			level = 1
		}
		out.frame = chooseFrame(q.setting("network_compression_method", "LZ4"), level)
	}
}

// execute finds a connection for the request and runs its statement there.
func (s *Server) execute(ctx context.Context, out *output, q *request, tables []externalTable, values url.Values, text io.Reader) (chdb.Stats, error) {
	end, err := s.turns.take(ctx)
	if err != nil {
		return chdb.Stats{}, err
	}
	defer end()
	run := &run{server: s, q: q, out: out}
	if q.session != "" {
		open, err := s.sessions.acquire(q)
		if err != nil {
			return chdb.Stats{}, err
		}
		defer s.sessions.release(open, q)
		run.session, run.link = open, open.link
		defer dropExternal(open.link, tables)
	} else {
		l, err := s.engine.take()
		if err != nil {
			return chdb.Stats{}, err
		}
		run.link = l
		defer func() {
			if run.traceless && len(tables) == 0 && q.reusable() {
				s.engine.giveBack(l)
			} else {
				s.engine.discard(l)
			}
		}()
	}
	if err := run.prepare(tables, values); err != nil {
		return chdb.Stats{}, err
	}
	return run.execute(ctx, text)
}

// exceptionTag makes the mark by which a client knows an exception that comes
// after data.
func exceptionTag() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
