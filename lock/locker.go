package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
)

// ErrClosed is why a hold ended, or was not had, when its Locker was closed.
var ErrClosed = errors.New("lock: closed")

// MaxLease bounds Options.Lease: beyond it a vanished machine would block its
// ids for longer than anybody wants to wait.
const MaxLease = 120 * time.Second

const (
	// trusted is the part of a lease that its holder counts on, by its own
	// clock from before the claim was sent.
	trusted = 0.8
	// freshLook is how long a look speaks for a hold that is used again.
	freshLook = time.Second
	// oldestPause is the longest pause between the looks of the oldest waiter;
	// each one that is before a waiter adds linePause, up to Options.Retry.
	oldestPause = 100 * time.Millisecond
	linePause   = 50 * time.Millisecond
	// tombstoneTime bounds a release; the lease ends what it cannot.
	tombstoneTime = 5 * time.Second
	// abandonTime bounds the tombstone of a claim that was never held.
	abandonTime = 2 * time.Second
)

// Options of a Locker. Times that are zero are zero: the caller has the defaults.
type Options struct {
	Lease  time.Duration // how long a vanished holder keeps a key
	Retry  time.Duration // the longest pause between two looks of a waiter
	Wait   time.Duration // how long to wait before giving up with a *BusyError; the first attempt is always made
	Linger time.Duration // how long a released hold is kept for the next use of its key
	Settle time.Duration // strategy "settle": a pause between announcing and looking; 0 for none

	Skew   func() time.Duration // see Rules.Skew; nil means 0
	Holder Holder               // who we are, for people
	Clock  Clock                // nil means SystemClock
	Logger *slog.Logger         // nil drops what is said
	// OnWait is told who is in the way when a wait has lasted for a second,
	// and again when that changes. It must not block.
	OnWait func(Wait)
}

// Wait describes a wait that is going on.
type Wait struct {
	Key     string
	Blocker Claim
	Now     Millis // the server's clock
	Waited  time.Duration
}

// BusyError says that the wait limit passed before the lock was free.
type BusyError struct{ Wait }

func (e *BusyError) Error() string {
	return fmt.Sprintf("lock %q is held by claim %s (%s pid %d)", e.Key, e.Blocker.ID, e.Blocker.Holder.Host, e.Blocker.Holder.PID)
}

// Locker takes and keeps locks on behalf of one process. It may be used by
// many goroutines; those of one Locker exclude each other as processes do.
type Locker struct {
	log  Log
	opts Options

	mu     sync.Mutex
	seats  map[string]*seat
	leases map[*lease]struct{}
	closed bool
	work   sync.WaitGroup // watchdogs and lingering releases
}

// New gives a Locker on a log.
func New(log Log, opts Options) *Locker {
	if opts.Clock == nil {
		opts.Clock = SystemClock()
	}
	if opts.Skew == nil {
		opts.Skew = func() time.Duration { return 0 }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Locker{log: log, opts: opts, seats: map[string]*seat{}, leases: map[*lease]struct{}{}}
}

// Acquire takes the lock of key, waiting for it for at most Options.Wait. The
// error is a *BusyError when somebody else kept it, ctx's when that ended, or
// what the log said. Nothing of a failed attempt is left in the log, save when
// the log cannot be reached.
func (l *Locker) Acquire(ctx context.Context, key string) (*Hold, error) {
	began := l.opts.Clock.Now()
	s, err := l.sit(ctx, key, began)
	if err != nil {
		return nil, err
	}
	held := s.idle
	if held != nil {
		s.idle = nil
		l.drop(s) // it was a user of the seat; now we are
		if !held.reusable(ctx) {
			held.release()
			held = nil
		}
	}
	if held == nil {
		if held, err = l.claim(ctx, key, began); err != nil {
			l.leave(s)
			return nil, err
		}
	}
	return newHold(held, s), nil
}

// Close gives every lock back, lingering or in use, and waits until that is
// done or ctx ends. Holds in use end with ErrClosed.
func (l *Locker) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	held := make([]*lease, 0, len(l.leases))
	for h := range l.leases {
		held = append(held, h)
	}
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for _, h := range held {
			all.Go(func() { h.end(ErrClosed); h.release() })
		}
		all.Wait()
		l.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("locks were not all given back in time; each frees itself within a lease: %w", context.Cause(ctx))
	}
}

func (l *Locker) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// look reads the log and says what it means for me.
func (l *Locker) look(ctx context.Context, key string, me Me, mem Memory) (Look, Decision, error) {
	sent := l.opts.Clock.Now()
	snap, err := l.log.Read(ctx, key)
	if err != nil {
		return Look{}, Decision{}, err
	}
	look := Look{Snapshot: snap, Sent: sent, Received: l.opts.Clock.Now()}
	return look, Rules{Skew: l.opts.Skew()}.Decide(look, me, mem), nil
}

// newClaimID gives "!" and a UUIDv7: text order is age order, and "!" sorts
// below every id of the older plugin, whose lowest id wins.
func newClaimID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("no random numbers for a claim id: %w", err)
	}
	return "!" + id.String(), nil
}

func (l *Locker) deadline(sent time.Duration) time.Duration {
	return sent + time.Duration(trusted*float64(l.opts.Lease))
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
