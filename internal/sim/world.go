package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chstate/chstate/internal/lockrules"
	"github.com/chstate/chstate/lock/locktest"
)

const lockTTL = locktest.TTL

// Mutation is what is wrong with a world on purpose: a rule of the lock that is
// switched off, or one of those who use it. The zero value is the lock as it is.
type Mutation struct {
	Off             lockrules.Off
	ServerVersion   bool // versions are the server's time at the insert, not the hold's
	ReadFirst       bool // the state is read before the lock is taken
	UnboundedDelete bool // a delete removes whatever is there
	NoSkew          bool // expiry is taken at its word by replicas whose clocks differ
	OneID           bool // a process has one claim id for all its holds
	AnyOrder        bool // goroutines of one moment go on as the scheduler pleases
	Brief           bool // nothing is wrong, but that the storm is short
}

// Result of one run.
type Result struct {
	Seed       uint64
	Violations []string
	Acquired   int // leases
	TakenOver  int // claims that were marked as dead
	Writes     int // acknowledged
	Reads      int
	Schedule   string
}

// world is one run.
type world struct {
	seed     uint64
	mutation Mutation
	climate  climate
	start    time.Time
	server   *server
	books    *books
	writes   atomic.Int64
	calm     chan struct{}
	broken   chan struct{} // closed when a promise is
	calmAt   atomic.Int64

	processes []*process
	workers   sync.WaitGroup

	mu       sync.Mutex
	schedule []event
}

type event struct {
	at     time.Duration
	format string
	args   []any
}

// Run runs one seed.
func Run(t *testing.T, seed uint64, m Mutation) (result Result) {
	synctest.Test(t, func(*testing.T) {
		w := &world{seed: seed, mutation: m, start: time.Now(), calm: make(chan struct{}), broken: make(chan struct{})}
		w.climate = newClimate(w.rand("climate"))
		if m.Brief {
			w.climate.storm /= 4
		}
		w.books = newBooks(w)
		w.server = newServer(w)
		w.run()
		w.books.mu.Lock()
		defer w.books.mu.Unlock()
		result = Result{
			Seed: seed, Violations: w.books.violations, Acquired: w.books.acquired, TakenOver: len(w.books.marked),
			Writes: len(w.books.writes), Reads: len(w.books.reads), Schedule: w.told(),
		}
	})
	return result
}

// endless is when the workers of the calm must have come to an end. A pause that
// began in the storm (see live) may last for two TTLs of it.
const endless = 2*lockTTL + 10*time.Minute

func (w *world) run() {
	w.trace("climate: %+v", w.climate)
	var weather sync.WaitGroup
	weather.Go(w.server.keepHouse)
	weather.Go(w.server.keepTime)
	visitor := newProcess(w, "visitor")
	weather.Go(visitor.visit)
	for i := range w.climate.processes {
		w.begin(fmt.Sprintf("P%d", i+1))
	}
	w.killSome()
	weather.Wait()
	if w.rand("last kill").IntN(2) == 0 {
		w.killHolder()
	}
	done := make(chan struct{})
	go func() { w.workers.Wait(); close(done) }()
	select {
	case <-done:
	case <-w.broken:
	case <-time.After(endless):
		w.books.endless()
	}
	select {
	case <-w.broken: // no need to see more
		for _, p := range w.processes {
			p.kill()
		}
	default:
	}
	<-done
	for _, p := range w.processes {
		if err := p.locker.Close(context.Background()); err != nil {
			w.trace("%s: Close: %v", p, err)
		}
	}
	w.server.statement(func() { w.books.closed(w.server.log.Rows(key)) })
}

// begin starts a process.
func (w *world) begin(name string) {
	p := newProcess(w, name)
	w.processes = append(w.processes, p)
	for i := range w.climate.workers {
		w.workers.Go(func() { p.work(i) })
	}
}

// killSome is the storm: it lasts as long as the climate says, and kills
// processes meanwhile. Another one takes the place of each.
func (w *world) killSome() {
	r := w.rand("kills")
	over := time.After(w.climate.storm)
	for {
		var next <-chan time.Time
		if w.climate.kills > 0 {
			next = time.After(time.Duration(r.Float64() * 2 / w.climate.kills * float64(time.Minute)))
		}
		select {
		case <-w.broken:
			w.becalm()
			return
		case <-over:
			w.becalm()
			return
		case <-next:
			victim := w.processes[r.IntN(len(w.processes))]
			if !victim.isDead() {
				victim.kill()
				w.begin(victim.name + "'")
			}
		}
	}
}

func (w *world) becalm() {
	w.trace("CALM")
	w.calmAt.Store(int64(w.now()))
	close(w.calm)
}

// killHolder kills a process that holds, if one does within a while.
func (w *world) killHolder() {
	for range 100 {
		time.Sleep(50 * time.Millisecond)
		if p := w.books.holder(); p != nil {
			p.kill()
			return
		}
	}
}

func (w *world) checkHistory(l *lease) {
	w.server.statement(func() { w.books.archived(l, w.server.history, w.server.gone) })
}

func (w *world) now() time.Duration { return time.Since(w.start) }

// calmSince is when the storm ended; 0 while it goes on.
func (w *world) calmSince() time.Duration { return time.Duration(w.calmAt.Load()) }

// sleep waits; it is false when the storm is over.
func (w *world) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.calm:
		return false
	}
}

func (w *world) nextWrite() int { return int(w.writes.Add(1)) }

// rand gives the chance of one part of the world.
func (w *world) rand(part string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(part))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) trace(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case *write, *lease: // they change
			args[i] = fmt.Sprint(a)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.schedule = append(w.schedule, event{w.now(), format, args})
}

func (w *world) told() string {
	var b strings.Builder
	for _, e := range w.schedule {
		fmt.Fprintf(&b, "%12.6f  ", e.at.Seconds())
		fmt.Fprintf(&b, e.format, e.args...)
		b.WriteByte('\n')
	}
	return b.String()
}
