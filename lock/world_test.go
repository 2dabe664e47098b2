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
	"github.com/chstate/chstate/lock/locktest"
)

// world is a log in memory, a server clock that can be set, and the lockers on it.
type world struct {
	t    *testing.T
	log  *locktest.Memory
	jump atomic.Int64 // of the server's clock, in ms
}

// bubble runs a test in a world whose time is not real.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.log = locktest.NewMemory(w.now)
		test(t, w)
	})
}

func (w *world) now() lock.Millis {
	return lock.Millis(time.Now().UnixMilli() + w.jump.Load())
}

func (w *world) set(jump time.Duration) { w.jump.Store(jump.Milliseconds()) }

// process gives a locker, behind a wire of its own. It is closed at the end.
func (w *world) process(change ...func(*lock.Options)) (*lock.Locker, *wire) {
	opts := lock.Options{
		Lease: lease, Retry: time.Second, Wait: 30 * time.Second, Clock: lock.GoClock{},
		Holder: lock.Holder{Host: "host", PID: 1},
	}
	for _, c := range change {
		c(&opts)
	}
	wire := &wire{log: w.log, delay: time.Millisecond}
	l := lock.New(wire, opts)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			w.t.Error(err)
		}
	})
	return l, wire
}

// acquire takes a lock that must be had.
func (w *world) acquire(l *lock.Locker) *lock.Hold {
	w.t.Helper()
	h, err := l.Acquire(context.Background(), "key")
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// live counts the claims that count, tickets included.
func (w *world) live() (n int) {
	for _, c := range (lock.Snapshot{Rows: w.log.Rows("key")}).Claims() {
		if (lock.Rules{}).Live(c, w.now()) {
			n++
		}
	}
	return n
}

// wire is the way from a process to the log: each request takes delay there
// and delay back.
type wire struct {
	log   lock.Log
	delay time.Duration
	dead  atomic.Bool // nothing goes through any more, as after a SIGKILL

	mu     sync.Mutex
	append appendVia
	read   readVia
}

// appendVia changes how a row is sent: send stores it and gives the answer.
type appendVia func(ctx context.Context, rec lock.Record, send func() error) error

// readVia changes how the log is read.
type readVia func(ctx context.Context, ask func() (lock.Snapshot, error)) (lock.Snapshot, error)

// change sets both ways; nil is the plain one.
func (w *wire) change(a appendVia, r readVia) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.append, w.read = a, r
}

func (w *wire) vias() (appendVia, readVia) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.append, w.read
}

var errDead = errors.New("the process is dead")

func (w *wire) Append(ctx context.Context, key string, rec lock.Record) error {
	send := func() error {
		if err := w.travel(ctx); err != nil {
			return err
		}
		if err := w.log.Append(context.WithoutCancel(ctx), key, rec); err != nil {
			return err
		}
		return w.travel(ctx)
	}
	if via, _ := w.vias(); via != nil {
		return via(ctx, rec, send)
	}
	return send()
}

func (w *wire) Read(ctx context.Context, key string) (lock.Snapshot, error) {
	ask := func() (lock.Snapshot, error) {
		if err := w.travel(ctx); err != nil {
			return lock.Snapshot{}, err
		}
		snap, err := w.log.Read(context.WithoutCancel(ctx), key)
		if err != nil {
			return snap, err
		}
		return snap, w.travel(ctx)
	}
	if _, via := w.vias(); via != nil {
		return via(ctx, ask)
	}
	return ask()
}

func (w *wire) travel(ctx context.Context) error {
	if w.dead.Load() {
		return errDead
	}
	return nap(ctx, w.delay)
}

func nap(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// nothing is a write that does nothing.
func nothing(context.Context, lock.Millis) error { return nil }
