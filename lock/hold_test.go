package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chstate/chstate/lock"
)

func TestHoldIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process()
		h := w.acquire(l)
		var last lock.Millis
		for range 100 {
			time.Sleep(6 * time.Second)
			err := h.Write(context.Background(), 0, func(_ context.Context, v lock.Millis) error {
				if v <= last || v < w.now() || v > w.now()+1000 {
					t.Errorf("version now%+d ms, after now%+d", v-w.now(), last-w.now())
				}
				last = v
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if !h.Written() {
			t.Error("Written is false")
		}
		h.Release()
	})
}

func TestHoldIsLostWhenRenewalsFail(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		h := w.acquire(l)
		acquired := time.Now()
		wire.change(func(context.Context, lock.Record, func() error) error { return errors.New("no way through") }, nil)
		<-h.Context().Done()
		if after := time.Since(acquired); after < lease*8/10-10*time.Millisecond || after > lease*8/10 {
			t.Errorf("context ended after %s, want 0.8 of a lease after the announcement was sent", after)
		}
		for what, err := range map[string]error{
			"context": context.Cause(h.Context()), "check": h.Check(),
			"write": h.Write(context.Background(), 0, func(context.Context, lock.Millis) error {
				t.Error("a write was sent")
				return nil
			}),
		} {
			if !errors.Is(err, lock.ErrLost) {
				t.Errorf("%s says %v", what, err)
			}
		}
		wire.change(nil, nil)
		h.Release()
		w.acquire(l).Release()
	})
}

// Renewals whose answers come after the old deadline do not count, although
// the rows are there.
func TestLateRenewalDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		h := w.acquire(l)
		wire.change(func(_ context.Context, _ lock.Record, send func() error) error {
			err := send()
			time.Sleep(lease / 2)
			return err
		}, nil)
		acquired := time.Now()
		<-h.Context().Done()
		if after := time.Since(acquired); after > lease*9/10 {
			t.Errorf("held for %s", after)
		}
		wire.change(nil, nil)
		h.Release()
	})
}

// Two of three renewals may fail.
func TestHoldSurvivesShortFaults(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		h := w.acquire(l)
		n := 0
		wire.change(func(_ context.Context, _ lock.Record, send func() error) error {
			if n++; n%3 != 0 {
				return errors.New("no way through")
			}
			return send()
		}, nil)
		time.Sleep(2 * time.Minute)
		if err := h.Check(); err != nil {
			t.Error(err)
		}
		wire.change(nil, nil)
		h.Release()
	})
}

func TestLateAcknowledgementIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		h := w.acquire(l)
		wire.dead.Store(true) // no renewals
		var ended bool
		err := h.Write(context.Background(), 0, func(ctx context.Context, _ lock.Millis) error {
			time.Sleep(lease)
			ended = ctx.Err() != nil
			return nil // the server has it
		})
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("acknowledged after the deadline: %v", err)
		}
		if !ended {
			t.Error("the write's context did not end with the lock")
		}
		wire.dead.Store(false)
		h.Release()
	})
}

func TestWriteErrorIsTheCallers(t *testing.T) {
	errServer := errors.New("the server said no")
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process()
		h := w.acquire(l)
		err := h.Write(context.Background(), 0, func(context.Context, lock.Millis) error { return errServer })
		if !errors.Is(err, errServer) || errors.Is(err, lock.ErrLost) {
			t.Errorf("got %v", err)
		}
		if err := h.Check(); err != nil {
			t.Errorf("the hold ended: %v", err)
		}
		h.Release()
	})
}

// A state row dated 2030 must not hide what is written over it.
func TestVersionsAheadOfTheClock(t *testing.T) {
	future := lock.Millis(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process()
		h := w.acquire(l)
		var got []lock.Millis
		write := func(above lock.Millis) {
			t.Helper()
			err := h.Write(context.Background(), above, func(_ context.Context, v lock.Millis) error {
				got = append(got, v)
				rows := w.log.Rows("key")
				if last := rows[len(rows)-1]; last.Ceiling <= v {
					t.Errorf("version %d is not below the stored ceiling %d", v, last.Ceiling)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		write(future)
		write(0)
		time.Sleep(time.Minute) // later renewals must not take the ceiling back
		write(0)
		if len(got) != 3 || got[0] != future+1 || got[1] <= got[0] || got[2] <= got[1] {
			t.Errorf("versions %v, want them to count on from %d", got, future+1)
		}
		h.Release()

		// The next holder is above, although the server's clock is not.
		h = w.acquire(l)
		last := got[2]
		got = nil
		write(0)
		if got[0] <= last {
			t.Errorf("the next holder's version %d is not above %d", got[0], last)
		}
		h.Release()
	})
}

func TestServerClockSetBackDuringAHold(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process()
		var last lock.Millis
		write := func(h *lock.Hold) {
			t.Helper()
			err := h.Write(context.Background(), 0, func(_ context.Context, v lock.Millis) error {
				if v <= last {
					t.Errorf("version fell by %d ms", last-v)
				}
				last = v
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		h := w.acquire(l)
		write(h)
		w.set(-time.Hour)
		for range 10 {
			time.Sleep(lease / 2)
			write(h)
		}
		h.Release()
		h = w.acquire(l)
		write(h)
		h.Release()
	})
}

// The server's clock jumps ahead of the holder's lease while somebody waits:
// the one who waited takes over, the holder is told, and nothing that it still
// writes is above what the other one writes.
func TestTakenOverWhenTheClockJumps(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		old, _ := w.process()
		h := w.acquire(old)
		next, wire := w.process()
		var all sync.WaitGroup
		var above atomic.Int64
		all.Go(func() {
			n := w.acquire(next)
			err := n.Write(context.Background(), 0, func(_ context.Context, v lock.Millis) error { above.Store(int64(v)); return nil })
			if err != nil {
				t.Error(err)
			}
			wire.dead.Store(true) // and it vanishes, leaving its claim as it is
			time.Sleep(time.Minute)
			n.Release()
		})
		time.Sleep(2 * time.Second)
		w.set(time.Hour)
		var err error
		for range 100 {
			err = h.Write(context.Background(), 0, func(_ context.Context, v lock.Millis) error {
				if above := lock.Millis(above.Load()); above != 0 && v >= above {
					t.Errorf("the older hold's version is %d ms above the newer one's", v-above)
				}
				return nil
			})
			time.Sleep(100 * time.Millisecond)
		}
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("the older hold says %v", err)
		}
		all.Wait()
		h.Release()
	})
}

func TestForcedRelease(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process()
		h := w.acquire(l)
		claims := (lock.Snapshot{Rows: w.log.Rows("key")}).Claims()
		if err := lock.Break(context.Background(), w.log, "key", claims[0], lock.Holder{Host: "ops", PID: 99}); err != nil {
			t.Fatal(err)
		}
		other, _ := w.process()
		began := time.Now()
		n := w.acquire(other)
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("free after %s", took)
		}
		<-h.Context().Done()
		if took := time.Since(began); took > lease/3+time.Second {
			t.Errorf("the holder is told after %s", took)
		}
		err := h.Check()
		if !errors.Is(err, lock.ErrLost) || err.Error() != `lock lost: "key" was taken over or broken by pid 99 on ops` {
			t.Errorf("the holder is told %v", err)
		}
		h.Release()
		if err := n.Check(); err != nil {
			t.Errorf("the next holder: %v", err)
		}
		n.Release()
	})
}

// A renewal that was under way when the claim was broken does not bring it back.
func TestBrokenDuringRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, wire := w.process()
		h := w.acquire(l)
		wire.change(func(_ context.Context, rec lock.Record, send func() error) error {
			if rec.Seq == 4 {
				claims := (lock.Snapshot{Rows: w.log.Rows("key")}).Claims()
				if err := w.log.Append(context.Background(), "key", claims[0].Tombstone()); err != nil {
					t.Error(err)
				}
				w.log.Merge("key", func(int) bool { return true })
			}
			err := send()
			w.log.Merge("key", func(int) bool { return true })
			return err
		}, nil)
		other, _ := w.process()
		<-h.Context().Done()
		if err := h.Check(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the holder is told %v", err)
		}
		w.acquire(other).Release()
		h.Release()
	})
}

// An announcement that nobody answered in time looks dead. Who takes it over
// breaks it, but that request is late: meanwhile the claimant waited its turn,
// announced again and holds.
func TestLateMarkDoesNotHitTheNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		slow, wire := w.process()
		first := true
		wire.change(func(_ context.Context, _ lock.Record, send func() error) error {
			if !first {
				return send()
			}
			first = false
			err := send()
			time.Sleep(lease + time.Second)
			return err
		}, nil)
		var all sync.WaitGroup
		var h *lock.Hold
		all.Go(func() { h = w.acquire(slow) })
		time.Sleep(lease + 500*time.Millisecond)
		dead := (lock.Snapshot{Rows: w.log.Rows("key")}).Claims()[0]
		all.Wait()
		if err := w.log.Append(context.Background(), "key", dead.Tombstone()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if dead.ID != h.ClaimID() || h.Check() != nil {
			t.Errorf("claim %s of the hold, broken in an earlier attempt as %s: %v", h.ClaimID(), dead.ID, h.Check())
		}
		h.Release()
	})
}

func TestTableEmptiedDuringAHold(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process()
		h := w.acquire(l)
		w.log.Empty()
		began := time.Now()
		<-h.Context().Done()
		if took := time.Since(began); took > lease/3+time.Second {
			t.Errorf("told after %s", took)
		}
		if err := h.Check(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("told %v", err)
		}
		h.Release()
		w.acquire(l).Release()
	})
}

// A waiter's claim is broken, or the table emptied, while it waits: it begins anew.
func TestWaiterBegins(t *testing.T) {
	for name, harm := range map[string]func(w *world){
		"broken": func(w *world) {
			for _, c := range (lock.Snapshot{Rows: w.log.Rows("key")}).Claims() {
				if c.Waiting {
					_ = w.log.Append(context.Background(), "key", c.Tombstone())
				}
			}
		},
		"emptied": func(w *world) { w.log.Empty() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				holder, _ := w.process()
				h := w.acquire(holder)
				other, _ := w.process()
				var all sync.WaitGroup
				all.Go(func() { w.acquire(other).Release() })
				time.Sleep(time.Second)
				harm(w)
				time.Sleep(time.Second)
				h.Release()
				all.Wait()
				if n := w.live(); n != 0 {
					t.Errorf("%d claims live", n)
				}
			})
		})
	}
}

func TestReleasedHoldIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, _ := w.process(func(o *lock.Options) { o.Linger = time.Second })
		h := w.acquire(l)
		h.Release()
		next := w.acquire(l)
		if next.ClaimID() != h.ClaimID() {
			t.Error("the lease did not linger")
		}
		if h.Context().Err() == nil || h.Check() == nil {
			t.Error("a released hold is alive while its lease is used again")
		}
		if err := h.Write(context.Background(), 0, nothing); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("it writes: %v", err)
		}
		if err := next.Check(); err != nil {
			t.Errorf("the next hold: %v", err)
		}
		next.Release()
	})
}

func TestLinger(t *testing.T) {
	lingering := func(o *lock.Options) { o.Linger = time.Second }
	tests := []struct {
		name string
		do   func(t *testing.T, w *world, l *lock.Locker)
	}{
		{"used again without a request", func(t *testing.T, w *world, l *lock.Locker) {
			for range 20 {
				time.Sleep(10 * time.Millisecond)
				w.acquire(l).Release()
			}
			if appends, reads := w.log.Counts(); appends != 1 || reads != 1 {
				t.Errorf("%d appends, %d reads", appends, reads)
			}
		}},
		{"looks before it is used when the last look is old", func(t *testing.T, w *world, l *lock.Locker) {
			h := w.acquire(l)
			time.Sleep(1500 * time.Millisecond)
			h.Release()
			w.acquire(l).Release()
			if appends, reads := w.log.Counts(); appends != 1 || reads != 2 {
				t.Errorf("%d appends, %d reads", appends, reads)
			}
		}},
		{"is given back when it has idled", func(t *testing.T, w *world, l *lock.Locker) {
			time.Sleep(time.Second + 10*time.Millisecond)
			if n := w.live(); n != 0 {
				t.Errorf("%d claims live", n)
			}
			if appends, _ := w.log.Counts(); appends != 2 {
				t.Errorf("%d appends", appends)
			}
			w.acquire(l).Release()
		}},
		{"is given back soon when somebody waits", func(t *testing.T, w *world, _ *lock.Locker) {
			other, _ := w.process()
			began := time.Now()
			w.acquire(other).Release()
			if took := time.Since(began); took > 450*time.Millisecond {
				t.Errorf("waited %s", took)
			}
		}},
		{"is not used again when broken", func(t *testing.T, w *world, l *lock.Locker) {
			h := w.acquire(l)
			claims := (lock.Snapshot{Rows: w.log.Rows("key")}).Claims()
			if err := w.log.Append(context.Background(), "key", claims[0].Tombstone()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1200 * time.Millisecond)
			h.Release()
			next := w.acquire(l)
			if next.ClaimID() == h.ClaimID() {
				t.Error("the broken claim was used again")
			}
			next.Release()
		}},
		{"is given back by Close", func(t *testing.T, w *world, l *lock.Locker) {
			if err := l.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := w.live(); n != 0 {
				t.Errorf("%d claims live", n)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				l, _ := w.process(lingering)
				w.acquire(l).Release()
				if n := w.live(); n != 1 {
					t.Fatalf("%d claims live, want the one that lingers", n)
				}
				test.do(t, w, l)
			})
		})
	}
}
