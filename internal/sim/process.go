package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/chstate/chstate/internal/lockrules"
	"github.com/chstate/chstate/lock"
)

var (
	errCut    = errors.New("connection cut")
	errKilled = errors.New("process killed")
)

// process is one process that uses the lock. It is the lock's clock and log
// too: each reading of the one and each request to the other is a step, between
// which it may be stopped.
type process struct {
	w      *world
	name   string
	rate   float64       // how fast its clock runs
	offset time.Duration // what its clock said at the start
	wall   time.Duration // how wrong its wall clock is, which claim ids come from
	locker *lock.Locker
	rules  lockrules.Rules
	die    chan struct{} // closed by a kill

	mu      sync.Mutex
	luck    *chance
	stopped time.Duration // until then
	dead    bool
	inside  int
}

func newProcess(w *world, name string) *process {
	r := w.rand(name)
	p := &process{
		w: w, name: name, luck: newChance(r.Uint64()), rate: rate(r), die: make(chan struct{}),
		offset: time.Duration(r.Int64N(int64(1000 * time.Hour))),
		wall:   time.Duration(r.NormFloat64() * float64(2*time.Second)),
	}
	if r.IntN(5) == 0 {
		p.wall = time.Duration(r.NormFloat64() * float64(time.Hour))
	}
	p.rules = lockrules.Rules{
		Off: w.mutation.Off, NewID: p.newID, Rand: func(n int64) int64 { return p.draw("lock").Int64N(n) },
		Tell: func(e lockrules.Event) { w.books.turn(p, e) },
	}
	if w.mutation.OneID {
		id, _ := p.newID()
		p.rules.NewID = func() ([16]byte, error) { return id, nil }
		p.rules.Rows = func() uint64 { return uint64(w.now()/time.Microsecond) << 31 } // an attempt each
	}
	opts := lock.Options{Lease: w.climate.lease, Retry: time.Second, Wait: w.climate.wait, Linger: w.climate.linger, Clock: p}
	switch w.climate.replicas {
	case quorum:
		if !w.mutation.NoSkew {
			opts.Skew = func() time.Duration { return maxSkew }
		}
	case lagging:
		opts.Settle = settleFor
	}
	p.locker = lock.New(p, opts)
	return p
}

func (p *process) String() string { return p.name }

// LockRules implements lockrules.Carrier.
func (p *process) LockRules() *lockrules.Rules { return &p.rules }

// rate is how fast a clock runs: any two within 10 % of each other.
func rate(r *rand.Rand) float64 { return 0.955 + 0.09*r.Float64() }

func (p *process) newID() (id [16]byte, err error) {
	const epoch = 1_700_000_000_000
	ms := epoch + (p.w.now() + p.wall).Milliseconds()
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16)
	binary.BigEndian.PutUint64(id[8:], p.draw("id").Uint64())
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id, nil
}

// draw gives random numbers for one purpose.
func (p *process) draw(purpose string) *rand.Rand {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.luck.of(purpose, p.w.now())
}

// upTo is a random time.
func (p *process) upTo(d time.Duration) time.Duration {
	return time.Duration(p.draw("time").Int64N(int64(d)))
}

func (p *process) chance(of float64) bool { return of > 0 && p.draw("chance").Float64() < of }

// clockAt is what the process's clock says at a moment.
func (p *process) clockAt(at time.Duration) time.Duration {
	return p.offset + time.Duration(float64(at)*p.rate)
}

// Now implements lock.Clock. The process may be stopped before the clock is
// read, and before anything is done with what it said.
func (p *process) Now() time.Duration {
	p.step("before the clock")
	now := p.clockAt(p.w.now())
	p.mayStop("after the clock")
	return now
}

// tick is the longest time that a step takes.
const tick = 50 * time.Microsecond

// tick lets a moment pass. It is drawn, so that goroutines which were woken at
// one moment go on one after the other, in an order that comes from the seed
// and not from the scheduler.
func (p *process) tick(where string) {
	if p.w.mutation.AnyOrder {
		return
	}
	id := who()
	p.mu.Lock()
	r := p.luck.source(where, id, p.w.now())
	p.mu.Unlock()
	time.Sleep(time.Duration(r.Uint64() % uint64(tick)))
}

// step is a place where the process may be stopped, and stays so while it is.
func (p *process) step(where string) {
	p.tick(where)
	p.mayStop(where)
}

func (p *process) mayStop(where string) {
	if p.w.climate.stops == 0 {
		return
	}
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	now, calm := p.w.now(), p.w.calmSince() != 0
	r := p.luck.of(where, now)
	if !calm && r.Float64() < p.w.climate.of(where).stops {
		p.stopped = max(p.stopped, now+p.w.climate.stop(r))
		p.w.trace("%s: stopped until %s %s", p, p.stopped, where)
	}
	left := p.stopped - now
	p.mu.Unlock()
	if left <= 0 {
		return
	}
	// Those that were stopped go on one after the other.
	after := time.Duration(r.Int64N(int64(time.Millisecond)))
	if !calm {
		select {
		case <-time.After(left):
		case <-p.w.calm:
		case <-p.die:
		}
	}
	time.Sleep(after)
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// kill ends the process. What it sent is on its way still.
func (p *process) kill() {
	if p.isDead() {
		return
	}
	p.w.trace("%s: KILLED", p)
	p.w.books.kill(p)
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	close(p.die)
}

// request sends one statement to the server, once.
func request[T any](ctx context.Context, p *process, what string, execute func() T) (result T, err error) {
	p.step("before " + what)
	if p.isDead() {
		return result, errKilled
	}
	if ctx.Err() != nil {
		return result, context.Cause(ctx)
	}
	plan := p.w.climate.of(what).plan(p.draw(what), p.w.calmSince() != 0)
	p.w.trace("%s: sends %s", p, what)
	answer := make(chan T, 1)
	if plan.executed {
		time.AfterFunc(plan.there, func() {
			r := execute()
			if plan.answered {
				time.AfterFunc(plan.back, func() { answer <- r })
			}
		})
	}
	for _, after := range plan.again {
		time.AfterFunc(plan.there+after, func() {
			p.w.trace("%s: %s arrives again", p, what)
			execute()
		})
	}
	cut := time.NewTimer(plan.patience)
	defer cut.Stop()
	calm := p.w.calm // cuts what was under way
	if p.w.calmSince() != 0 {
		calm = nil
	}
	select {
	case result = <-answer:
	case <-cut.C:
		err = errCut
	case <-calm:
		p.tick("calm")
		err = errCut
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-p.die:
		p.tick("killed")
		return result, errKilled
	}
	p.step("after " + what)
	if p.isDead() {
		return result, errKilled
	}
	p.w.trace("%s: answer to %s: %v", p, what, err)
	return result, err
}

// statement is a request that is sent again, unchanged, when the connection is cut.
func statement[T any](ctx context.Context, p *process, what string, execute func() T) (T, error) {
	for tries := 1; ; tries++ {
		result, err := request(ctx, p, what, execute)
		if !errors.Is(err, errCut) || tries == 5 {
			return result, err
		}
		if err := p.sleep(ctx, time.Duration(tries)*50*time.Millisecond); err != nil {
			return result, err
		}
	}
}

func (p *process) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d + p.upTo(time.Millisecond))
	defer t.Stop()
	var err error
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-p.die:
		err = errKilled
	}
	p.tick("woken")
	return err
}

type none struct{}

// Append implements lock.Log.
func (p *process) Append(ctx context.Context, _ string, rec lock.Record) error {
	p.w.books.sends(p, rec)
	what := fmt.Sprintf("claim %s seq %d%s", short(rec.ClaimID), rec.Seq, kind(rec))
	_, err := statement(ctx, p, what, func() none { p.w.server.append(rec); return none{} })
	return err
}

// Read implements lock.Log. The server's clock in it may be any time earlier
// than the rows, up to as long as the Read took by the process's clock.
func (p *process) Read(ctx context.Context, _ string) (lock.Snapshot, error) {
	sent := p.w.now()
	snap, err := statement(ctx, p, "a look", p.w.server.look)
	if took := p.clockAt(p.w.now()) - p.clockAt(sent); err == nil && p.chance(0.5) {
		snap.Now = snap.Now.Add(-p.upTo(took + took/10 + 2*time.Millisecond))
	}
	return snap, err
}
