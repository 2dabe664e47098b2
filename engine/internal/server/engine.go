package server

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// freshSettings undoes what libchdb sets for a local program and a server does
// not: with implicit_select a misspelt statement is taken for an expression.
// Parsing an INSERT's data in parallel starts threads, which costs a small INSERT
// a third of its time.
const freshSettings = "SET implicit_select = DEFAULT, allow_introspection_functions = DEFAULT, " +
	"storage_file_read_method = DEFAULT, input_format_parallel_parsing = 0"

// spare is how many connections wait ready. Closing one, opening another and
// preparing it takes about 0.3 ms; a request waits for none of that.
const spare = 4

// Engine is a running ClickHouse and its connections.
type Engine struct {
	lib      *chdb.Library
	args     []string
	keep     *chdb.Conn // while one connection is open, the engine runs
	log      *slog.Logger
	ready    chan *link
	refill   chan struct{}
	stop     chan struct{}
	stopOnce sync.Once
	wg       sync.WaitGroup

	// Version, TimeZone and Host are what version(), timezone() and hostName()
	// return.
	Version, TimeZone, Host string
}

// StartEngine starts the engine with libchdb's arguments.
func StartEngine(lib *chdb.Library, log *slog.Logger, args ...string) (*Engine, error) {
	e := &Engine{
		lib: lib, args: args, log: log,
		ready:  make(chan *link, spare),
		refill: make(chan struct{}, 1),
		stop:   make(chan struct{}),
	}
	var err error
	if e.keep, err = lib.Open(args...); err != nil {
		return nil, err
	}
	row, _, err := e.keep.Query([]byte("SELECT version(), timezone(), hostName()"), "TSVRaw")
	if err != nil {
		e.keep.Close()
		return nil, fmt.Errorf("the engine does not answer: %w", err)
	}
	if _, err := fmt.Sscanf(strings.ReplaceAll(string(row), "\t", " "), "%s %s %s", &e.Version, &e.TimeZone, &e.Host); err != nil {
		e.keep.Close()
		return nil, fmt.Errorf("the engine introduces itself as %q: %w", row, err)
	}
	e.wg.Go(e.keepReady)
	return e, nil
}

// keepReady opens connections ahead of the requests that will need them.
func (e *Engine) keepReady() {
	for {
		for len(e.ready) < cap(e.ready) {
			fresh, err := e.open()
			if err != nil {
				e.log.Warn("cannot open a connection ahead of need", "error", err)
				break
			}
			e.giveBack(fresh)
		}
		select {
		case <-e.stop:
			return
		case <-e.refill:
		}
	}
}

func (e *Engine) open() (*link, error) {
	conn, err := e.lib.Open(e.args...)
	if err != nil {
		return nil, err
	}
	if err := conn.Exec(freshSettings); err != nil {
		conn.Close()
		return nil, err
	}
	return newLink(conn), nil
}

// take returns a connection on which earlier requests left nothing but what
// configure takes back. The caller ends with giveBack or discard.
func (e *Engine) take() (*link, error) {
	select {
	case l := <-e.ready:
		return l, nil
	default:
		return e.open()
	}
}

// giveBack keeps a connection for another request.
func (e *Engine) giveBack(l *link) {
	select {
	case e.ready <- l:
	default:
		e.discard(l)
	}
}

// discard closes a connection, out of the way of the request that had it.
func (e *Engine) discard(l *link) {
	e.wg.Go(func() {
		l.conn.Close()
		select {
		case e.refill <- struct{}{}:
		default:
		}
	})
}

// Close ends the engine. Connections handed out must have been released.
func (e *Engine) Close() {
	e.stopOnce.Do(func() {
		close(e.stop)
		e.wg.Wait()
		for {
			select {
			case l := <-e.ready:
				l.conn.Close()
				continue
			default:
			}
			break
		}
		e.keep.Close()
	})
}

// KillAll asks every running statement to stop.
func (e *Engine) KillAll() error {
	l, err := e.take()
	if err != nil {
		return err
	}
	defer e.discard(l)
	return l.conn.Exec("KILL QUERY WHERE query NOT ILIKE 'KILL QUERY%' ASYNC")
}
