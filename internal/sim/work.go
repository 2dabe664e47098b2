package sim

import (
	"context"
	"errors"
	"time"

	"github.com/chstate/chstate/lock"
)

// calmRounds is how often each worker gets the lock after the storm.
const calmRounds = 2

// work is live of the n-th worker: one that is deeper on its stack than the
// ones before, which who tells it from them by.
//
//go:noinline
func (p *process) work(n int) {
	if n > 0 {
		p.work(n - 1)
		return
	}
	p.tick("begin")
	p.live()
}

// live is one worker of a process: it takes the lock again and again, and
// works under it as the library does.
func (p *process) live() {
	calm := 0
	for calm < calmRounds && !p.isDead() {
		think := p.upTo(2 * time.Second)
		if p.w.climate.idle && p.chance(0.1) && p.w.calmSince() == 0 {
			think += lockTTL + p.upTo(lockTTL)
		}
		if p.sleep(context.Background(), think) != nil {
			return
		}
		inCalm := p.w.calmSince() != 0
		if p.round() && inCalm {
			calm++
		}
	}
}

// round is one hold, if it can be had.
func (p *process) round() bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if p.w.calmSince() == 0 && p.chance(p.w.climate.cancels) {
		defer time.AfterFunc(p.upTo(p.w.climate.lease), cancel).Stop()
	}
	var early *seen
	if p.w.mutation.ReadFirst {
		r, err := statement(ctx, p, "a read", p.w.server.read)
		if err != nil {
			return false
		}
		early = &r
	}
	inCalm := p.w.calmSince()
	began := p.w.now()
	h, err := p.locker.Acquire(ctx, key)
	if err != nil {
		p.w.trace("%s: Acquire: %v", p, err)
		return false
	}
	if inCalm != 0 {
		p.w.books.waited(p, p.w.now()-began)
	}
	defer h.Release()
	p.enter(1)
	defer p.enter(-1)
	s := &session{p: p, hold: h, lease: p.w.books.held(p, h.ClaimID()), early: early}
	for range 1 + p.draw("operations").IntN(3) {
		if err := s.operation(ctx); err != nil {
			p.w.trace("%s: %v", s.lease, err)
			if errors.Is(err, lock.ErrLost) || p.isDead() || ctx.Err() != nil {
				return true
			}
		}
		if p.sleep(ctx, p.upTo(p.w.climate.lease/8)) != nil {
			return true
		}
		if p.w.climate.replicas == lagging {
			break // a replica may not show the hold's own write yet
		}
	}
	return true
}

// enter counts the workers of this process that hold.
func (p *process) enter(by int) {
	p.mu.Lock()
	p.inside += by
	several := p.inside > 1
	p.mu.Unlock()
	if several {
		p.w.books.mu.Lock()
		p.w.books.violated(1, "two workers of %s hold at once", p)
		p.w.books.mu.Unlock()
	}
}

// session is the work under one hold, as chstate.Hold does it: the version of
// the row that is replaced is known before anything is written, and the first
// write of a claim copies that row to the history.
type session struct {
	p     *process
	hold  *lock.Hold
	lease *lease
	early *seen
	above lock.Millis
	known bool
}

func (s *session) operation(ctx context.Context) error {
	srv := s.p.w.server
	if s.p.chance(s.p.w.climate.deletes) {
		return s.write(ctx, true, func(w *write) { srv.remove(w) })
	}
	if s.p.chance(0.6) { // a partial state: read, merge, write
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	return s.write(ctx, false, func(w *write) { srv.insert(w.version, w) })
}

func (s *session) read(ctx context.Context) error {
	if err := s.hold.Check(); err != nil {
		return err
	}
	var r seen
	var err error
	if s.early != nil {
		r, s.early = *s.early, nil
	} else if r, err = statement(ctx, s.p, "a read", s.p.w.server.read); err != nil {
		return err
	}
	s.above, s.known = r.version, true
	s.p.w.books.readUnder(s.lease, r.reaches)
	return nil
}

func (s *session) write(ctx context.Context, isDelete bool, execute func(*write)) error {
	if err := s.hold.Check(); err != nil {
		return err
	}
	fresh := !s.hold.Written()
	if fresh && !s.known {
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	if fresh || isDelete {
		_, err := statement(ctx, s.p, "an archive", func() none { s.p.w.server.archive(); return none{} })
		if err != nil {
			return err
		}
		if fresh {
			s.p.w.checkHistory(s.lease)
		}
	}
	if s.p.w.calmSince() == 0 && s.p.chance(s.p.w.climate.cancels) {
		// The caller loses patience: the write is on its way, or not.
		impatient, cancel := context.WithTimeout(ctx, s.p.upTo(10*time.Millisecond))
		defer cancel()
		ctx = impatient
	}
	w := &write{lease: s.lease, n: s.p.w.nextWrite()}
	err := s.hold.Write(ctx, s.above, func(ctx context.Context, v lock.Millis) error {
		w.version = v
		_, err := statement(ctx, s.p, "the "+w.String(), func() none { execute(w); return none{} })
		return err
	})
	if err == nil {
		s.p.w.books.acknowledged(w)
	}
	return err
}

// visit writes without the lock, now and then.
func (p *process) visit() {
	perMinute := p.w.climate.outside
	for perMinute > 0 && p.w.sleep(time.Duration(float64(p.upTo(2*time.Minute))/perMinute)) {
		r, err := statement(context.Background(), p, "a read", p.w.server.read)
		if err != nil {
			continue
		}
		version := max(r.now, r.version+1)
		_, _ = statement(context.Background(), p, "a write without the lock", func() none { p.w.server.insert(version, nil); return none{} })
	}
}
