package service

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/chstate/chstate"
)

// job is the work of one request.
type job struct {
	id     uint64
	op     string
	waits  bool // waits for others, or for the caller: not worth finishing at the end
	cancel context.CancelFunc

	givenUp bool            // the caller cancelled it
	credits chan struct{}   // chunks that the caller asked for
	states  []chstate.State // gathered for set_all
	started bool            // the last of them has come
}

// warmID is the id of the one job that no request asked for.
const warmID = math.MaxUint64

// begin starts the work of a request that takes time.
func (s *service) begin(req request) {
	if s.job(req.ID) != nil {
		s.answer(req.ID, nil, protocolError(fmt.Sprintf("request %d came twice", req.ID)))
		return
	}
	j := &job{id: req.ID, op: req.Op}
	switch req.Op {
	case "set_all": // the work begins with the last of its states
		j.cancel = func() {}
		s.add(j)
	case "lock":
		j.waits = true
		s.start(j, func(ctx context.Context) { s.lock(ctx, j, req.StateID) })
	case "ids", "all":
		j.waits = true
		j.credits = make(chan struct{}, chunksAhead)
		s.start(j, func(ctx context.Context) { s.stream(ctx, j, req.Pattern) })
	default:
		s.start(j, func(ctx context.Context) {
			ok, err := s.call(ctx, req)
			s.answer(req.ID, ok, err)
		})
	}
}

// call does what has one answer.
func (s *service) call(ctx context.Context, req request) (any, error) {
	switch req.Op {
	case "ping":
		return done{}, nil
	case "get":
		return s.get(ctx, req)
	case "set":
		return s.set(ctx, req)
	case "delete":
		return done{}, s.delete(ctx, req)
	case "clear_all":
		n, err := s.store.ClearAll(ctx)
		return gotCount{n}, err
	case "ensure":
		return done{}, s.store.Prepare(ctx)
	case "migrate":
		return done{}, s.store.Migrate(ctx)
	}
	return nil, protocolError(fmt.Sprintf("unknown request %q", req.Op))
}

func (s *service) get(ctx context.Context, req request) (body any, err error) {
	var (
		st       chstate.State
		revision uint64
	)
	if req.Hold == 0 {
		st, err = s.store.Get(ctx, req.StateID)
	} else {
		err = s.under(req, func(h Hold) (err error) {
			st, err = h.Get(ctx)
			_, revision = h.Known()
			return err
		})
	}
	if errors.Is(err, chstate.ErrNoState) {
		return gotState{}, nil
	}
	if err != nil {
		return nil, err
	}
	w, err := toWire(st)
	return gotState{&w, revision}, err
}

func (s *service) set(ctx context.Context, req request) (body any, err error) {
	st := wireState{ID: req.StateID, Partial: req.Partial, Completed: req.Completed}.toState()
	if req.Hold == 0 {
		return done{}, s.store.Set(ctx, st)
	}
	var revision uint64
	err = s.under(req, func(h Hold) (err error) {
		err = h.Set(ctx, st)
		_, revision = h.Known()
		return err
	})
	return wrote{revision}, err
}

func (s *service) delete(ctx context.Context, req request) error {
	if req.Hold == 0 {
		return s.store.Delete(ctx, req.StateID)
	}
	return s.under(req, func(h Hold) error { return h.Delete(ctx) })
}

// put gathers states of a set_all; with the last of them the writing begins.
func (s *service) put(req request) {
	j := s.job(req.Of)
	if j == nil || j.op != "set_all" || j.started {
		return // it was cancelled, or refused
	}
	for _, w := range req.States {
		j.states = append(j.states, w.toState())
	}
	if !req.Last {
		return
	}
	j.started = true
	s.start(j, func(ctx context.Context) {
		n, err := s.store.SetAll(ctx, func(yield func(chstate.State, error) bool) {
			for _, st := range j.states {
				if !yield(st, nil) {
					return
				}
			}
		})
		s.answer(j.id, gotCount{n}, err)
	})
}

// start runs work as a job that can be cancelled and is waited for.
func (s *service) start(j *job, work func(ctx context.Context)) {
	var ctx context.Context
	ctx, j.cancel = context.WithCancel(s.ctx)
	s.add(j)
	s.running.Go(func() {
		defer s.drop(j)
		work(ctx)
	})
}

func (s *service) add(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[j.id] = j
}

func (s *service) drop(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.id)
	j.cancel()
}

func (s *service) job(id uint64) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[id]
}

// cancelJobs cancels the jobs that which names.
func (s *service) cancelJobs(which func(*job) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if which(j) {
			j.cancel()
		}
	}
}

// cancelRequest gives up a request. A lock that was granted in the meantime,
// with an answer that the caller will not look at, is released.
func (s *service) cancelRequest(id uint64) {
	s.mu.Lock()
	j := s.jobs[id]
	if j != nil {
		j.givenUp = true
		j.cancel()
		if j.op == "set_all" && !j.started {
			delete(s.jobs, id)
		}
	}
	hold := s.holds.grantedTo(id)
	s.mu.Unlock()
	if hold != 0 {
		s.release(hold)
	}
}
