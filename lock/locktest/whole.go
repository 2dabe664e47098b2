package locktest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chstate/chstate/lock"
)

// shortLease keeps the tests of a lost lease short.
const shortLease = 2 * time.Second

func locker(t *testing.T, log lock.Log, lease time.Duration) *lock.Locker {
	l := lock.New(log, lock.Options{Lease: lease, Retry: time.Second, Wait: time.Minute, Holder: lock.Holder{Host: "locktest"}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

func acquire(t *testing.T, l *lock.Locker, key string) *lock.Hold {
	t.Helper()
	h, err := l.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// exclusion has several lockers add to a number that the lock alone guards,
// each hold with one version above the last.
func (s suite) exclusion(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	const lockers, rounds = 4, 5
	var (
		all     sync.WaitGroup
		inside  atomic.Int32
		count   int
		version lock.Millis
	)
	for range lockers {
		l := locker(t, log, testLease)
		all.Go(func() {
			for range rounds {
				h, err := l.Acquire(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold at once", n)
				}
				err = h.Write(t.Context(), 0, func(_ context.Context, v lock.Millis) error {
					if v <= version {
						t.Errorf("version %d after %d", v, version)
					}
					version = v
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				seen := count
				time.Sleep(2 * time.Millisecond)
				count = seen + 1
				inside.Add(-1)
				h.Release()
			}
		})
	}
	all.Wait()
	if count != lockers*rounds {
		t.Errorf("counted to %d, want %d", count, lockers*rounds)
	}
	for _, c := range read(t, log, key).Claims() {
		if !c.Released {
			t.Errorf("claim left behind: %+v", c)
		}
	}
}

// handOver sees that who waits gets the lock soon after its release, and tells
// how soon; what it should be is a figure of the benchmark.
func (s suite) handOver(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	a, b := locker(t, log, testLease), locker(t, log, testLease)
	var took []time.Duration
	for range 7 {
		h := acquire(t, a, key)
		got := make(chan time.Time)
		go func() {
			h, err := b.Acquire(t.Context(), key)
			got <- time.Now()
			if err != nil {
				t.Error(err)
				return
			}
			h.Release()
		}()
		time.Sleep(200 * time.Millisecond)
		released := time.Now()
		h.Release()
		took = append(took, (<-got).Sub(released))
	}
	median := sorted(took)[len(took)/2]
	t.Logf("median hand-over %s", median)
	if median > testLease/4 { // nobody told the waiter, nor did it look
		t.Errorf("median hand-over %s, of %v", median, took)
	}
}

// cut is a log whose owner vanished: nothing gets through any more.
type cut struct {
	lock.Log
	gone atomic.Bool
}

var errGone = errors.New("this process is gone")

func (c *cut) Append(ctx context.Context, key string, rec lock.Record) error {
	if c.gone.Load() {
		return errGone
	}
	return c.Log.Append(ctx, key, rec)
}

func (c *cut) Read(ctx context.Context, key string) (lock.Snapshot, error) {
	if c.gone.Load() {
		return lock.Snapshot{}, errGone
	}
	return c.Log.Read(ctx, key)
}

func (s suite) takeover(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	wire := &cut{Log: log}
	h := acquire(t, locker(t, wire, shortLease), key)
	var before, after lock.Millis
	write := func(to *lock.Millis) func(context.Context, lock.Millis) error {
		return func(_ context.Context, v lock.Millis) error { *to = v; return nil }
	}
	if err := h.Write(t.Context(), 0, write(&before)); err != nil {
		t.Fatal(err)
	}
	wire.gone.Store(true)
	vanished := time.Now()
	next := acquire(t, locker(t, log, testLease), key)
	if took := time.Since(vanished); took > shortLease+8*time.Second {
		t.Errorf("replaced after %s, with a lease of %s", took, shortLease)
	}
	if err := h.Write(t.Context(), 0, write(&before)); !errors.Is(err, lock.ErrLost) {
		t.Errorf("the one that vanished writes on: %v", err)
	}
	if err := next.Write(t.Context(), 0, write(&after)); err != nil || after <= before {
		t.Errorf("version %d after %d, %v", after, before, err)
	}
	next.Release()
	h.Release()
}

func (s suite) broken(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	h := acquire(t, locker(t, log, shortLease), key)
	claims := read(t, log, key).Claims()
	if len(claims) != 1 || claims[0].ID != h.ClaimID() || claims[0].Holder.Host != "locktest" {
		t.Fatalf("the log has %+v, want the claim of the holder", claims)
	}
	if err := lock.Break(t.Context(), log, key, claims[0], lock.Holder{Host: "operator"}); err != nil {
		t.Fatal(err)
	}
	acquire(t, locker(t, log, testLease), key).Release()
	select {
	case <-h.Context().Done():
	case <-time.After(2 * shortLease):
	}
	if err := h.Check(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("the holder is told %v", err)
	}
	h.Release()
}
