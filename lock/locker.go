package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/chstate/chstate/internal/lockrules"
)

// ErrClosed is why a hold ended, or was not had, when its Locker was closed.
var ErrClosed = errors.New("lock: closed")

// SettlesInLease is how many of the pauses Options.Settle a lease has to outlast:
// two go by before a lock is had, and something is to be done under it.
const SettlesInLease = 4

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
	// watchPause bounds how late a holder sees that its machine was suspended.
	watchPause = time.Second
	// lingerLook is how old the last look of a lingering lease gets before it
	// looks whether somebody waits.
	lingerLook = 250 * time.Millisecond
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
	Settle time.Duration // strategy "settle": a pause between announcing and looking, see SettlesInLease; 0 for none

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
	log   Log
	opts  Options
	rules *lockrules.Rules

	closing context.Context // ends with ErrClosed, and what waits with it
	close   context.CancelCauseFunc

	mu     sync.Mutex
	seats  map[string]*seat
	leases map[*lease]struct{}
	closed bool
	work   sync.WaitGroup // claims under way, watchdogs, leases that linger, sweeps

	giving      atomic.Int64 // leases on their way back, or that could not be given back
	sweeping    turn         // one deletion at a time
	sweepFailed atomic.Int64 // when the last deletion failed, by Clock; 0 for none
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
	if opts.Settle > 0 {
		// Reused, a lease would not wait for the replicas to catch up with what
		// was written under it.
		opts.Linger = 0
	}
	l := &Locker{log: log, opts: opts, rules: &lockrules.Rules{}, seats: map[string]*seat{}, leases: map[*lease]struct{}{}, sweeping: newTurn()}
	if c, ok := opts.Clock.(lockrules.Carrier); ok {
		l.rules = c.LockRules()
	}
	l.closing, l.close = context.WithCancelCause(context.Background())
	return l
}

// Acquire takes the lock of key, waiting for it for at most Options.Wait. The
// error is a *BusyError when somebody else kept it, ErrSlow when nobody did but
// the log answered too late, ErrClosed after Close, ctx's when that ended, or
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
		if held, err = l.claimUnlessClosed(ctx, s, began); err != nil {
			l.leave(s)
			return nil, err
		}
	}
	return newHold(held, s), nil
}

// claimUnlessClosed is claim, ended by Close and waited for by it.
func (l *Locker) claimUnlessClosed(ctx context.Context, s *seat, began time.Duration) (*lease, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	l.work.Add(1)
	l.mu.Unlock()
	defer l.work.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.closing, func() { cancel(ErrClosed) })()
	held, err := l.claim(ctx, s, began)
	s.waitsFor(Wait{})
	if err != nil && errors.Is(context.Cause(ctx), ErrClosed) {
		return nil, ErrClosed
	}
	return held, err
}

// Close gives every lock back, lingering or in use, ends what waits for one,
// and returns when that is done or ctx ends. Holds in use end with ErrClosed.
func (l *Locker) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	held := slices.Collect(maps.Keys(l.leases))
	l.mu.Unlock()
	l.close(ErrClosed)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, h := range held {
			l.work.Go(h.release)
		}
		l.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.leases) == 0 && l.giving.Load() == 0 {
			// What is left are deletions for the older plugin's sake, which go on
			// in the server; nobody's lock hangs on them.
			return nil
		}
		return fmt.Errorf("locks were not all given back in time; each frees itself within a lease: %w", context.Cause(ctx))
	}
}

// look reads the log and says what it means for me.
func (l *Locker) look(ctx context.Context, key string, me Me, mem Memory) (Look, Decision, error) {
	sent := l.opts.Clock.Now()
	snap, err := l.log.Read(ctx, key)
	if err != nil {
		return Look{}, Decision{}, err
	}
	look := Look{Snapshot: snap, Sent: sent, Received: l.opts.Clock.Now()}
	f, ok := l.log.(Forgetter)
	rules := Rules{Skew: l.opts.Skew(), Shared: ok && f.Shared(), off: l.rules.Off}
	d := rules.Decide(look, me, mem)
	l.sweepOver(key, d)
	return look, d, nil
}

// forget takes a lease off the list of what Close gives back.
func (l *Locker) forget(h *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leases, h)
}

// newClaimID gives "!" and a UUIDv7: text order is age order, and "!" sorts
// below every id of the older plugin, whose lowest id wins. Where after is
// another claim id, the new one sorts after it, whatever our wall clock says.
func (l *Locker) newClaimID(after string) (string, error) {
	newID := uuid.NewV7
	if l.rules.NewID != nil {
		newID = func() (uuid.UUID, error) { return l.rules.NewID() }
	}
	id, err := newID()
	if err != nil {
		return "", fmt.Errorf("no random numbers for a claim id: %w", err)
	}
	if text := "!" + id.String(); text > after {
		return text, nil
	}
	if other, err := uuid.Parse(strings.TrimPrefix(after, "!")); err == nil { // else it is none of ours, and has no age
		const stamp = 6 // bytes of a UUIDv7 that tell its time
		copy(id[:stamp], other[:stamp])
		for i := stamp - 1; i >= 0; i-- { // a millisecond later
			if id[i]++; id[i] != 0 {
				break
			}
		}
	}
	return "!" + id.String(), nil
}

func (l *Locker) rand(n int64) int64 {
	if l.rules.Rand != nil {
		return l.rules.Rand(n)
	}
	return rand.Int64N(n)
}

func (l *Locker) deadline(sent time.Duration) time.Duration {
	return sent + time.Duration(trusted*float64(l.opts.Lease))
}

// sleep waits for d or until ctx ends; it fails when that was before it began,
// however short d is.
func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
