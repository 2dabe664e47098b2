package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chstate/chstate/lock"
)

func TestLockersExclude(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const processes, rounds = 4, 10
		var all sync.WaitGroup
		inside, done := 0, 0 // guarded by the lock alone
		for range processes {
			l, _ := w.process()
			all.Go(func() {
				for range rounds {
					h := w.acquire(l)
					if inside++; inside != 1 {
						t.Errorf("%d hold at once", inside)
					}
					time.Sleep(20 * time.Millisecond)
					inside--
					done++
					h.Release()
				}
			})
		}
		all.Wait()
		if done != processes*rounds {
			t.Errorf("%d turns done", done)
		}
		if n := w.live(); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

func TestGoroutinesOfOneLockerExclude(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process(func(o *lock.Options) { o.Linger = time.Second })
		var all sync.WaitGroup
		inside := 0
		for range 8 {
			all.Go(func() {
				for range 5 {
					h := w.acquire(l)
					if inside++; inside != 1 {
						t.Errorf("%d hold at once", inside)
					}
					time.Sleep(time.Millisecond)
					inside--
					h.Release()
				}
			})
		}
		all.Wait()
		if appends, reads := w.log.Counts(); appends != 1 || reads != 1 {
			t.Errorf("%d appends and %d reads for one claim that lingered", appends, reads)
		}
		// Keys do not disturb each other.
		a := w.acquire(l)
		b, err := l.Acquire(context.Background(), "another key")
		if err != nil {
			t.Fatal(err)
		}
		a.Release()
		b.Release()
	})
}

func TestRoundTrips(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process()
		count := func(what string, appends, reads int, do func()) {
			t.Helper()
			a0, r0 := w.log.Counts()
			do()
			if a, r := w.log.Counts(); a-a0 != appends || r-r0 != reads {
				t.Errorf("%s: %d appends and %d reads, want %d and %d", what, a-a0, r-r0, appends, reads)
			}
		}
		var h *lock.Hold
		count("claim", 1, 1, func() { h = w.acquire(l) })
		count("write", 0, 0, func() {
			if err := h.Write(context.Background(), 0, nothing); err != nil {
				t.Error(err)
			}
		})
		count("a third of a lease", 1, 1, func() { time.Sleep(lease/3 + time.Second) })
		count("ten thirds, and writes all the time", 10, 10, func() {
			for range 10 * lease / 3 / time.Second {
				if err := h.Write(context.Background(), 0, nothing); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
		})
		count("release", 1, 0, h.Release)
		count("second release", 0, 0, h.Release)
		h = w.acquire(l)
		count("try a held lock", 2, 1, func() {
			other, _ := w.process(func(o *lock.Options) { o.Wait = 0 })
			if _, err := other.Acquire(context.Background(), "key"); !errors.As(err, new(*lock.BusyError)) {
				t.Errorf("got %v", err)
			}
		})
		h.Release()
	})
}

// Four are held up by one: they are served in the order in which they came.
func TestWaitersAreServedOldestFirst(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		first, _ := w.process()
		h := w.acquire(first)
		var (
			all   sync.WaitGroup
			order []int
		)
		for i := range 4 {
			l, _ := w.process()
			all.Go(func() {
				time.Sleep(time.Duration(i+1) * 50 * time.Millisecond)
				h := w.acquire(l)
				order = append(order, i)
				time.Sleep(100 * time.Millisecond)
				h.Release()
			})
		}
		time.Sleep(time.Second)
		h.Release()
		all.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("served in the order %v", order)
		}
	})
}

// A process that takes and gives the lock without a pause must not starve one that waits.
func TestNewcomerGoesBehindTickets(t *testing.T) {
	for _, linger := range []time.Duration{0, time.Second} {
		t.Run(fmt.Sprintf("linger %s", linger), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				greedy, _ := w.process(func(o *lock.Options) { o.Linger = linger })
				modest, _ := w.process()
				ctx, stop := context.WithCancel(context.Background())
				var all sync.WaitGroup
				all.Go(func() {
					for ctx.Err() == nil {
						h := w.acquire(greedy)
						time.Sleep(10 * time.Millisecond)
						h.Release()
					}
				})
				time.Sleep(time.Second)
				for range 5 {
					began := time.Now()
					h := w.acquire(modest)
					if waited := time.Since(began); waited > 2*time.Second {
						t.Errorf("waited %s for one who holds for 10 ms", waited)
					}
					h.Release()
				}
				stop()
				all.Wait()
			})
		})
	}
}

// One whose wall clock is behind has older ids than all who wait before it.
func TestClockBehindDoesNotOvertake(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		first, _ := w.process()
		h := w.acquire(first)
		// A ticket from a host whose clock is a year ahead.
		const ahead = "!ffffffff-0000-7000-8000-000000000000"
		ticket := func(seq uint64, released bool) {
			rec := lock.Record{ClaimID: ahead, Seq: seq, Waiting: true, Released: released, Lease: time.Minute}
			if err := w.log.Append(context.Background(), "key", rec); err != nil {
				t.Fatal(err)
			}
		}
		ticket(2, false)
		second, _ := w.process()
		var all sync.WaitGroup
		all.Go(func() {
			h := w.acquire(second)
			if h.ClaimID() <= ahead {
				t.Errorf("claim %s overtakes %s", h.ClaimID(), ahead)
			}
			h.Release()
		})
		time.Sleep(time.Second)
		h.Release()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := w.live(); n != 2 {
			t.Errorf("%d claims live, want the two tickets", n)
		}
		ticket(3, true)
		all.Wait()
	})
}

func TestHandOverTakesLessThan100ms(t *testing.T) {
	for _, linger := range []time.Duration{0, time.Second} {
		t.Run(fmt.Sprintf("linger %s", linger), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var (
					took     []time.Duration
					released time.Time
					all      sync.WaitGroup
				)
				for range 3 {
					l, _ := w.process(func(o *lock.Options) { o.Linger = linger })
					all.Go(func() {
						for range 20 {
							h := w.acquire(l)
							if !released.IsZero() {
								took = append(took, time.Since(released))
							}
							time.Sleep(300 * time.Millisecond)
							released = time.Now()
							h.Release()
							time.Sleep(10 * time.Millisecond)
						}
					})
				}
				all.Wait()
				slices.Sort(took)
				t.Logf("median %s, longest %s", took[len(took)/2], took[len(took)-1])
				if median := took[len(took)/2]; median >= 100*time.Millisecond {
					t.Errorf("median hand-over %s, longest %s", median, took[len(took)-1])
				}
			})
		})
	}
}

// Twenty on one id: all served within 1.5 times the sum of their holds and 3 s.
func TestTwentyWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const hold = 50 * time.Millisecond
		began := time.Now()
		var all sync.WaitGroup
		for range 20 {
			l, _ := w.process()
			all.Go(func() {
				h := w.acquire(l)
				time.Sleep(hold)
				h.Release()
			})
		}
		all.Wait()
		took := time.Since(began)
		t.Logf("took %s for holds of %s", took, 20*hold)
		if took > 20*hold*3/2+3*time.Second {
			t.Errorf("that is too long")
		}
	})
}

func TestKilledHolderFreesWithinALease(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		victim, wire := w.process()
		h := w.acquire(victim)
		time.Sleep(time.Minute) // renewed many times
		wire.dead.Store(true)
		killed := time.Now()
		other, _ := w.process()
		next := w.acquire(other)
		if waited := time.Since(killed); waited < lease-lease/3-time.Second || waited > lease+200*time.Millisecond {
			t.Errorf("free after %s", waited)
		}
		if err := h.Check(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the dead one's hold says %v", err)
		}
		next.Release()
		h.Release()
	})
}

// The server's clock was set back while a dead one's claim seems to live for
// an hour: it is taken over when it has not moved for 1.25 leases.
func TestDeadHolderAndClockSetBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		victim, wire := w.process()
		h := w.acquire(victim)
		wire.dead.Store(true)
		w.set(-time.Hour)
		killed := time.Now()
		other, _ := w.process()
		next := w.acquire(other)
		if waited := time.Since(killed); waited > lease*5/4+300*time.Millisecond {
			t.Errorf("free after %s", waited)
		}
		next.Release()
		h.Release()
	})
}

func TestWaitLimitNamesTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		holder, _ := w.process(func(o *lock.Options) { o.Holder = lock.Holder{Host: "etl-7", PID: 4711, Command: "meltano run"} })
		h := w.acquire(holder)
		var told []lock.Wait
		other, _ := w.process(func(o *lock.Options) {
			o.Wait = 5 * time.Second
			o.OnWait = func(w lock.Wait) { told = append(told, w) }
		})
		began := time.Now()
		_, err := other.Acquire(context.Background(), "key")
		var busy *lock.BusyError
		if !errors.As(err, &busy) {
			t.Fatalf("got %v", err)
		}
		if b := busy.Blocker; b.Holder.Host != "etl-7" || b.Holder.PID != 4711 || b.ID != h.ClaimID() || b.Holder.LeaseMillis != lease.Milliseconds() {
			t.Errorf("it names %+v", b)
		}
		if waited := time.Since(began); waited < 4*time.Second || waited > 5100*time.Millisecond || busy.Waited > waited {
			t.Errorf("gave up after %s", waited)
		}
		if len(told) != 1 || told[0].Waited < time.Second || told[0].Waited > 1200*time.Millisecond || told[0].Blocker.ID != h.ClaimID() {
			t.Errorf("told %+v, want once after a second", told)
		}
		if n := w.live(); n != 1 {
			t.Errorf("%d claims live after giving up, want the holder's alone", n)
		}
		h.Release()
	})
}

func TestWaitWithinTheProcessIsLimitedToo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process(func(o *lock.Options) { o.Wait = 2 * time.Second })
		h := w.acquire(l)
		began := time.Now()
		_, err := l.Acquire(context.Background(), "key")
		var busy *lock.BusyError
		if !errors.As(err, &busy) || busy.Blocker.ID != h.ClaimID() {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited != 2*time.Second {
			t.Errorf("gave up after %s", waited)
		}
		h.Release()
	})
}

func TestCancelledWaiterLeavesNothing(t *testing.T) {
	errStop := errors.New("told to stop")
	bubble(t, func(t *testing.T, w *world) {
		holder, _ := w.process()
		h := w.acquire(holder)
		// Cancelled at every stage: before the announcement is stored, before
		// its answer, while looking, and while waiting.
		for _, after := range []time.Duration{0, 500, 1500, 2500, 3500, 4500, 5500, 500_000, 1_500_000} {
			other, _ := w.process()
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(after*time.Microsecond, func() { cancel(errStop) })
			if _, err := other.Acquire(ctx, "key"); !errors.Is(err, errStop) {
				t.Errorf("cancelled after %s: %v", after*time.Microsecond, err)
			}
			if n := w.live(); n != 1 {
				t.Errorf("cancelled after %s: %d claims live", after*time.Microsecond, n)
			}
		}
		h.Release()
		if n := w.live(); n != 0 {
			t.Errorf("%d claims live at the end", n)
		}
	})
}

func TestLogErrorEndsAcquire(t *testing.T) {
	errServer := errors.New("the server said no")
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		wire.change(nil, func(context.Context, func() (lock.Snapshot, error)) (lock.Snapshot, error) {
			return lock.Snapshot{}, errServer
		})
		if _, err := l.Acquire(context.Background(), "key"); !errors.Is(err, errServer) {
			t.Errorf("got %v", err)
		}
		if n := w.live(); n != 0 {
			t.Errorf("%d claims live", n)
		}
		wire.change(nil, nil)
		w.acquire(l).Release()
	})
}

// A server that hangs must not hold a waiter up beyond its wait limit.
func TestServerThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		wire.change(func(ctx context.Context, _ lock.Record, _ func() error) error {
			<-ctx.Done()
			return ctx.Err()
		}, nil)
		began := time.Now()
		_, err := l.Acquire(context.Background(), "key")
		if !errors.Is(err, lock.ErrSlow) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited > 30*time.Second+2*lease {
			t.Errorf("gave up after %s", waited)
		}
	})
}

// Answers that always come after the deadline never make a holder.
func TestServerThatIsTooSlow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		wire.delay = lease / 4 // announce and look take a whole lease
		_, err := l.Acquire(context.Background(), "key")
		if !errors.Is(err, lock.ErrSlow) || !strings.Contains(err.Error(), "lock_timeout_seconds") {
			t.Errorf("got %v", err)
		}
	})
}

// The answer to an announcement is lost, the row is there; then it is repeated.
func TestRepeatedAnnouncement(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		wire.change(func(_ context.Context, _ lock.Record, send func() error) error {
			if err := send(); err != nil {
				return err
			}
			time.Sleep(time.Second)
			return send()
		}, nil)
		h := w.acquire(l)
		if err := h.Write(context.Background(), 0, nothing); err != nil {
			t.Error(err)
		}
		h.Release()
		if n := w.live(); n != 0 {
			t.Errorf("%d claims live", n)
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process(func(o *lock.Options) { o.Linger = 5 * time.Second })
		h := w.acquire(l)
		idle, err := l.Acquire(context.Background(), "idle")
		if err != nil {
			t.Fatal(err)
		}
		idle.Release() // lingers
		other, _ := w.process()
		waiting, err := other.Acquire(context.Background(), "other")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for _, key := range []string{"key", "other"} { // one waits in the process, one in the log
			all.Go(func() {
				if _, err := l.Acquire(context.Background(), key); !errors.Is(err, lock.ErrClosed) {
					t.Errorf("waiting for %q: %v", key, err)
				}
			})
		}
		time.Sleep(time.Second)
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if err := h.Check(); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("the hold in use says %v", err)
		}
		if err := h.Write(context.Background(), 0, nothing); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("it writes: %v", err)
		}
		if _, err := l.Acquire(context.Background(), "key"); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("afterwards: %v", err)
		}
		h.Release()
		waiting.Release()
		for _, key := range []string{"key", "idle", "other"} {
			for _, c := range (lock.Snapshot{Rows: w.log.Rows(key)}).Claims() {
				if !c.Released {
					t.Errorf("claim left on %q: %+v", key, c)
				}
			}
		}
	})
}

func TestCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		w.acquire(l)
		wire.change(func(ctx context.Context, _ lock.Record, _ func() error) error {
			<-ctx.Done()
			return ctx.Err()
		}, nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// Replicas that lag by up to a second: the claim waits before it looks, and
// again before what others wrote just now is read.
func TestSettle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process(func(o *lock.Options) { o.Settle, o.Linger = time.Second, time.Second })
		began := time.Now()
		h := w.acquire(l)
		if took := time.Since(began); took < time.Second || took > 1100*time.Millisecond {
			t.Errorf("alone: took %s", took)
		}
		h.Release()
		if w.live() != 0 {
			t.Error("a lease lingers, which nothing may read from a lagging replica")
		}
		began = time.Now()
		h = w.acquire(l)
		if took := time.Since(began); took < 2*time.Second || took > 2100*time.Millisecond {
			t.Errorf("after another: took %s", took)
		}
		h.Release()
	})
}
