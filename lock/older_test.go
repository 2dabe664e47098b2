package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chstate/chstate/lock"
	"github.com/chstate/chstate/lock/locktest"
)

// sharing is a wire to a log that the older plugin uses too.
type sharing struct {
	*wire
	log    *locktest.Memory
	known  bool // that it does
	forget error
}

func (s *sharing) Forget(ctx context.Context, key string, claimIDs ...string) error {
	if s.forget != nil {
		return s.forget
	}
	if err := s.travel(ctx); err != nil {
		return err
	}
	time.Sleep(20 * time.Millisecond) // a mutation is slow
	return s.log.Forget(context.WithoutCancel(ctx), key, claimIDs...)
}

func (s *sharing) Shared() bool { return s.known }

// sharingProcess gives a locker that may delete its claims.
func (w *world) sharingProcess(known bool, change ...func(*lock.Options)) (*lock.Locker, *sharing) {
	opts := lock.Options{Lease: lease, Retry: time.Second, Wait: 30 * time.Second, Clock: lock.GoClock{}, Holder: lock.Holder{Host: "host", PID: 1}}
	for _, c := range change {
		c(&opts)
	}
	s := &sharing{wire: &wire{log: w.log, delay: time.Millisecond}, log: w.log, known: known}
	l := lock.New(s, opts)
	w.t.Cleanup(func() { w.close(l) })
	return l, s
}

func (w *world) close(l *lock.Locker) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		w.t.Error(err)
	}
}

// plugin is a process of the older plugin.
type plugin struct {
	w    *world
	id   string
	same bool // one lock id for all its attempts
	bold bool // it inserts without looking first, so that some row is nearly always there
	n    int
}

const (
	pluginSettles = time.Second
	pluginWaits   = 30 * time.Second
	pluginStale   = 300 * time.Second
)

// insert stores a candidate and gives its lock id.
func (p *plugin) insert() string {
	p.n++
	id := fmt.Sprintf("%s-%04d", p.id, p.n)
	if p.same {
		id = p.id
	}
	rec := lock.Record{ClaimID: id, Lease: pluginStale, Ceiling: lock.ServerFills}
	if err := p.w.log.Append(context.Background(), "key", rec); err != nil {
		p.w.t.Error(err)
	}
	return id
}

func (p *plugin) remove(id string) {
	time.Sleep(20 * time.Millisecond)
	_ = p.w.log.Forget(context.Background(), "key", id)
}

// acquire is its way of taking a lock.
func (p *plugin) acquire() (string, error) {
	for began := time.Now(); time.Since(began) < pluginWaits; {
		for _, row := range p.w.log.Rows("key") {
			if row.LockedAt.Add(pluginStale) < p.w.now() {
				p.remove(row.ClaimID)
			}
		}
		if !p.bold && len(p.w.log.Rows("key")) > 0 {
			time.Sleep(pluginSettles)
			continue
		}
		mine := p.insert()
		time.Sleep(pluginSettles)
		lowest := slices.MinFunc(p.w.log.Rows("key"), func(a, b lock.Row) int { return strings.Compare(a.ClaimID, b.ClaimID) })
		if lowest.ClaimID == mine {
			return mine, nil
		}
		p.remove(mine)
	}
	return "", errors.New("the older plugin did not get the lock within its 30 s")
}

// Both kinds exclude each other, and both get on, each within its own limit,
// although ours are at it all the time.
func TestOlderPluginAndOursTakeTurns(t *testing.T) {
	for _, c := range []struct {
		ours, theirs int
		sameID       bool
		pause        time.Duration
		bold         bool
	}{
		{1, 1, false, 50 * time.Millisecond, true},
		{1, 1, true, 0, true},
		{2, 1, false, 10 * time.Millisecond, true},
		{1, 3, true, 400 * time.Millisecond, true},
		{3, 2, false, 30 * time.Millisecond, true},
		{6, 1, false, 0, true},
		// One that looks first needs a moment without a row of anybody's.
		{1, 1, false, 3 * time.Second, false},
		{2, 1, false, 5 * time.Second, false},
		{1, 3, true, 5 * time.Second, false},
	} {
		t.Run(fmt.Sprintf("%d of ours, %d of theirs, bold %v", c.ours, c.theirs, c.bold), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				const rounds = 8
				var ours, theirs sync.WaitGroup
				// The lock under test is what keeps them apart; the race
				// detector does not know it, so each step is atomic by itself.
				var inside, sum, turns atomic.Int64
				var done atomic.Bool
				hold := func() {
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d hold at once", n)
					}
					seen := sum.Load()
					time.Sleep(30 * time.Millisecond)
					sum.Store(seen + 1)
					inside.Add(-1)
					turns.Add(1)
				}
				for range c.ours {
					l, _ := w.sharingProcess(!c.bold, func(o *lock.Options) { o.Linger = time.Second })
					ours.Go(func() {
						for n := 0; n < rounds || !done.Load(); n++ {
							h := w.acquire(l)
							hold()
							h.Release()
							time.Sleep(c.pause)
						}
					})
				}
				for i := range c.theirs {
					p := &plugin{w: w, id: fmt.Sprint(i), same: c.sameID, bold: c.bold}
					time.Sleep(137 * time.Millisecond) // out of step
					theirs.Go(func() {
						for range rounds {
							id, err := p.acquire()
							if err != nil {
								t.Error(err)
								return
							}
							hold()
							p.remove(id)
							time.Sleep(50 * time.Millisecond)
						}
					})
				}
				theirs.Wait()
				done.Store(true)
				ours.Wait()
				if sum.Load() != turns.Load() {
					t.Errorf("counted to %d in %d turns", sum.Load(), turns.Load())
				}
			})
		})
	}
}

// A holder of the older plugin is waited for, also while others of its kind come and go.
func TestOlderHolderIsRespected(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p, other := &plugin{w: w, id: "8"}, &plugin{w: w, id: "9"}
		id, err := p.acquire()
		if err != nil {
			t.Fatal(err)
		}
		released := false
		go func() {
			for range 12 {
				mine := other.insert()
				time.Sleep(pluginSettles)
				other.remove(mine)
			}
		}()
		go func() {
			time.Sleep(10 * time.Second)
			released = true
			p.remove(id)
		}()
		l, _ := w.sharingProcess(false)
		began := time.Now()
		h := w.acquire(l)
		if !released {
			t.Errorf("took the lock after %s from a holder of the older plugin", time.Since(began))
		}
		// The column's default ceiling, 300 s ahead, is not a version that it sends.
		err = h.Write(context.Background(), 0, func(_ context.Context, v lock.Millis) error {
			if ahead := v - w.now(); ahead > 100 {
				t.Errorf("the version is %d ms ahead of the server: it hides what the older plugin writes next", ahead)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		h.Release()
		time.Sleep(5 * time.Second) // other is done
	})
}

// One of the older plugin's rows is always there, but none that was there
// before us: we do not wait for those.
func TestLatecomersOfTheOlderPlugin(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		stop := make(chan struct{})
		var all sync.WaitGroup
		for i := range 3 {
			p := &plugin{w: w, id: fmt.Sprint(i), bold: true}
			time.Sleep(333 * time.Millisecond)
			all.Go(func() {
				for {
					id, err := p.acquire()
					if err != nil {
						t.Error(err)
					}
					time.Sleep(100 * time.Millisecond)
					p.remove(id)
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		l, _ := w.sharingProcess(false)
		for range 5 {
			began := time.Now()
			w.acquire(l).Release()
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("the lock took %s", took)
			}
		}
		close(stop)
		all.Wait()
	})
}

// A claim that is over is deleted where the older plugin is about, and only there.
func TestSweep(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		name    string
		known   bool  // that the older plugin uses the table
		plugin  bool  // a row of it is seen, while we hold
		write   error // what becomes of a write
		lost    bool  // a renewal is not answered
		deleted bool
	}{
		{name: "nobody else is about"},
		{name: "the table is known to be shared", known: true, deleted: true},
		{name: "a row of the older plugin was seen", plugin: true, deleted: true},
		{name: "a write may still arrive", known: true, write: refused},
		{name: "a renewal may still arrive", known: true, lost: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				l, s := w.sharingProcess(c.known)
				h := w.acquire(l)
				var mine string
				if c.plugin {
					mine = (&plugin{w: w, id: "8"}).insert()
				}
				if c.lost {
					s.change(func(_ context.Context, _ lock.Record, send func() error) error {
						_ = send()
						s.change(nil, nil)
						return refused
					}, nil)
				}
				time.Sleep(lease / 2) // a renewal, and its looks
				if err := h.Write(context.Background(), 0, func(context.Context, lock.Millis) error { return c.write }); !errors.Is(err, c.write) {
					t.Error(err)
				}
				began := time.Now()
				h.Release()
				if took := time.Since(began); took > 10*time.Millisecond {
					t.Errorf("release waited %s for the deletion", took)
				}
				w.close(l)
				left := slices.DeleteFunc(w.log.Rows("key"), func(r lock.Row) bool { return r.ClaimID == mine })
				if deleted := len(left) == 0; deleted != c.deleted {
					t.Errorf("rows left: %+v", left)
				}
			})
		})
	}
}

// A waiter that gives up leaves nothing in the older plugin's way either.
func TestSweepOfAWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := &plugin{w: w, id: "8"}
		id := p.insert()
		l, _ := w.sharingProcess(false, func(o *lock.Options) { o.Wait = 5 * time.Second })
		var busy *lock.BusyError
		if _, err := l.Acquire(context.Background(), "key"); !errors.As(err, &busy) || busy.Blocker.ID != id {
			t.Fatalf("got %v", err)
		}
		w.close(l)
		if rows := w.log.Rows("key"); len(rows) != 1 {
			t.Errorf("rows left: %+v", rows)
		}
	})
}

// A newcomer that stepped aside has taken its claim back. When it then gives
// up it does not say so again: that row would come after the deletion, and stay.
func TestGivingUpAsideSaysNothingMore(t *testing.T) {
	aside := false
	for offset := range 8 { // newcomers step aside in some parts of a round only
		bubble(t, func(t *testing.T, w *world) {
			time.Sleep(time.Duration(offset) * 500 * time.Millisecond)
			(&plugin{w: w, id: "8"}).insert()
			l, s := w.sharingProcess(false, func(o *lock.Options) { o.Wait = 500 * time.Millisecond })
			said, tickets := 0, 0
			s.change(func(_ context.Context, rec lock.Record, send func() error) error {
				if rec.Waiting && !rec.Released {
					tickets++
				}
				if rec.Released {
					said++
				}
				return send()
			}, nil)
			var busy *lock.BusyError
			if _, err := l.Acquire(context.Background(), "key"); !errors.As(err, &busy) {
				t.Fatalf("got %v", err)
			}
			w.close(l)
			if rows := w.log.Rows("key"); said != 1 || len(rows) != 1 {
				t.Errorf("after %d ms: taken back %d times; rows left: %+v", offset*500, said, rows)
			}
			aside = aside || tickets == 0
		})
	}
	if !aside {
		t.Error("nobody stepped aside")
	}
}

// Only what its owner gave back, and no request can still touch, is deleted.
func TestOver(t *testing.T) {
	rows := []lock.Row{
		{ClaimID: "!live", Seq: 2, LockedAt: 100, ExpiresAt: 9000, Ceiling: 9000},
		{ClaimID: "!given back", Seq: 2, LockedAt: 100, ExpiresAt: 9000, Ceiling: 9000},
		{ClaimID: "!given back", Seq: 3, Released: true, LockedAt: 200, ExpiresAt: 200},
		{ClaimID: "!unsure", Seq: 3, Released: true, LockedAt: 200, ExpiresAt: 1200},
		{ClaimID: "!dead", Seq: 2, LockedAt: 100, ExpiresAt: 300, Ceiling: 300},
		{ClaimID: "!broken", Seq: 2, LockedAt: 100, ExpiresAt: 300, Ceiling: 300},
		{ClaimID: "!broken/broken", Seq: 2, Released: true, LockedAt: 400, ExpiresAt: 400, Ceiling: 300},
	}
	older := lock.Row{ClaimID: "8", LockedAt: 900, ExpiresAt: 300_900, Ceiling: 300_900}
	for _, c := range []struct {
		name   string
		rows   []lock.Row
		now    lock.Millis
		shared bool
		want   string
	}{
		{"nobody is in need of it", rows, 1000, false, "[]"},
		{"the older plugin has a row", append(slices.Clone(rows), older), 1000, false, "[!given back]"},
		{"a lease later", append(slices.Clone(rows), older), 1201, false, "[!given back !unsure]"},
		{"the older plugin may be waiting, and their owners at it", rows, 5200, true, "[]"},
		{"their owners are not", rows, 5201, true, "[!given back]"},
	} {
		d := lock.Rules{Shared: c.shared}.Decide(lock.Look{Snapshot: lock.Snapshot{Now: c.now, Rows: c.rows}}, lock.Me{ID: "!z"}, lock.Memory{})
		if got := fmt.Sprint(d.Over); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
