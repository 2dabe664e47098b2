package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Config is what a service needs to know before its first request.
type Config struct {
	// Version is told to the caller in the first line.
	Version string
	// Open makes the store that the init request asks for. It must not connect.
	Open func(Init, *slog.Logger) (Store, error)
	// ParentID gives the id of the parent process; when it changes, the
	// parent is gone. Nil means os.Getppid.
	ParentID func() int
	// ParentEvery is how often ParentID is asked; 0 means 250 ms.
	ParentEvery time.Duration
	// Grace is how long calls in flight may go on when the service ends, and
	// Bound how long the whole end may take; 0 means 300 ms and 1.5 s.
	Grace, Bound time.Duration
}

func (c Config) withDefaults() Config {
	if c.ParentID == nil {
		c.ParentID = os.Getppid
	}
	if c.ParentEvery == 0 {
		c.ParentEvery = 250 * time.Millisecond
	}
	if c.Grace == 0 {
		c.Grace = 300 * time.Millisecond
	}
	if c.Bound == 0 {
		c.Bound = 1500 * time.Millisecond
	}
	return c
}

// Init is the first request: where the state is kept, and for whom.
type Init struct {
	URI      string
	Settings map[string]any // string, bool, json.Number or nil
	Command  string         // what a person typed, for the holder of a lock
}

// Run serves requests until the input ends, a shutdown request comes, ctx is
// done or the parent process is gone; then it releases every lock within
// cfg.Bound and returns. It is an error only if the first line could not be written.
func Run(ctx context.Context, in io.Reader, out, log io.Writer, cfg Config) error {
	cfg = cfg.withDefaults()
	parent := cfg.ParentID()
	s := newService(ctx, out, log, cfg)
	defer s.cancel()
	if err := s.w.send(hello{Protocol: Protocol, Version: cfg.Version, PID: os.Getpid()}); err != nil {
		return fmt.Errorf("cannot write the first line: %w", err)
	}
	stop := make(chan struct{})
	defer close(stop)
	lines := readLines(in, stop)
	orphaned := time.NewTicker(cfg.ParentEvery)
	defer orphaned.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				s.end()
				return nil
			}
			if line.Op == "shutdown" {
				s.end()
				s.answer(line.ID, done{}, nil)
				return nil
			}
			s.take(line)
		case <-orphaned.C:
			if cfg.ParentID() != parent {
				s.end()
				return nil
			}
		case <-ctx.Done():
			s.end()
			return nil
		}
	}
}

// service is one run. Only the goroutine of Run starts jobs and ends the
// service; what jobs share is under mu.
type service struct {
	cfg   Config
	w     *writer
	log   *slog.Logger
	level *slog.LevelVar

	ctx    context.Context // of all work; outlives the context given to Run, so that locks can be released
	cancel context.CancelFunc

	store  Store
	failed error // why init failed; then it is the answer to everything

	running sync.WaitGroup
	mu      sync.Mutex
	jobs    map[uint64]*job
	holds   holds
}

func newService(ctx context.Context, out, log io.Writer, cfg Config) *service {
	level := new(slog.LevelVar)
	s := &service{
		cfg:    cfg,
		w:      newWriter(out),
		level:  level,
		log:    slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: level})),
		failed: protocolError("the first request was not init"),
		jobs:   map[uint64]*job{},
		holds:  newHolds(),
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

// take starts the work of one request, or does it where it takes no time.
func (s *service) take(in incoming) {
	switch {
	case in.err != nil:
		s.answer(in.ID, nil, protocolError(fmt.Sprintf("a request could not be read (%v)", in.err)))
	case in.Op == "init":
		s.answer(in.ID, done{}, s.init(in.request))
	case in.Op == "cancel":
		s.cancelRequest(in.Of)
	case in.Op == "more":
		s.more(in.Of)
	case in.Op == "put":
		s.put(in.request)
	case in.Op == "release":
		s.release(in.Hold)
	case s.failed != nil:
		s.answer(in.ID, nil, s.failed)
	default:
		s.begin(in.request)
	}
}

func (s *service) init(req request) error {
	if s.store != nil {
		return protocolError("a second init request")
	}
	if req.LogLevel != "" {
		if err := s.level.UnmarshalText([]byte(req.LogLevel)); err != nil {
			return protocolError(err.Error())
		}
	}
	settings, err := readSettings(req.Settings)
	if err != nil {
		return err
	}
	store, err := s.cfg.Open(Init{URI: req.URI, Settings: settings, Command: req.Command}, s.log)
	s.failed = err
	if err != nil {
		return err
	}
	s.store = store
	// Connecting goes on while the caller is still starting up. What goes
	// wrong will go wrong again in the first call, which reports it.
	s.start(&job{id: warmID, op: "warm", waits: true}, func(ctx context.Context) { _ = store.Warm(ctx) })
	return nil
}

// readSettings keeps the digits of numbers.
func readSettings(text json.RawMessage) (settings map[string]any, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&settings); err != nil {
		return nil, protocolError(fmt.Sprintf("the settings could not be read (%v)", err))
	}
	return settings, nil
}

// answer sends the one answer to a request. Nobody is told of an answer that
// cannot be sent: the end of the input comes with it.
func (s *service) answer(id uint64, ok any, err error) {
	a := answer{ID: id, OK: ok}
	if err != nil {
		a.OK, a.Error = nil, asFailure(err)
	}
	_ = s.w.send(a)
}

// end finishes all work, releases every lock and closes the store, within the bound.
func (s *service) end() {
	bound := time.After(s.cfg.Bound)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.cancelJobs(func(j *job) bool { return j.waits })
		grace := time.AfterFunc(s.cfg.Grace, func() { s.cancelJobs(func(*job) bool { return true }) })
		s.running.Wait()
		grace.Stop()
		s.releaseAll()
		s.running.Wait()
		if s.store != nil {
			if err := s.store.Close(); err != nil {
				s.log.Warn("closing the state store: " + err.Error())
			}
		}
	}()
	select {
	case <-finished:
	case <-bound:
		s.log.Warn("the server does not answer; a lock may stay until its lease ends")
	}
}
