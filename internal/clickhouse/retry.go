package clickhouse

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// noticeAfter is when people are told that something is being waited for.
	noticeAfter = 2 * time.Second
	firstPause  = 50 * time.Millisecond
	longPause   = 2 * time.Second
)

// retrying is the repetition of one request whose failure passes by itself.
type retrying struct {
	db      *DB
	started time.Time
	tries   int
	moved   bool // something came since the last failure
	told    bool
	token   any // the insert's deduplication token, the same in each repetition
}

func (db *DB) retrying() *retrying { return &retrying{db: db, started: time.Now()} }

// progress says that the request has got somewhere: what fails later is a new
// failure, with the whole time for retrying before it. It is called for each row.
func (r *retrying) progress() { r.moved = true }

// again says whether to send the request once more, after having waited for
// it; it does not once the time for retrying is over or the context ends.
func (r *retrying) again(ctx context.Context, failure *Error) bool {
	if !failure.passing || ctx.Err() != nil {
		return false
	}
	if r.moved {
		r.started, r.tries, r.moved = time.Now(), 0, false
	}
	r.tries++
	if r.tries == 1 && failure.cut {
		// Most likely a connection that the server had closed while it idled:
		// no reason to wait, and nothing to tell.
		return true
	}
	left := r.db.cfg.RetryFor - time.Since(r.started)
	if left <= 0 {
		return false
	}
	pause := min(jitter(r.tries), left)
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= pause {
		return false
	}
	if !r.told && time.Since(r.started)+pause >= noticeAfter {
		r.told = true
		if r.db.mayTell() {
			r.db.log.Warn("waiting for ClickHouse", "server", r.db.Target(), "because", failure.Reason,
				"at most", r.db.cfg.RetryFor.Round(time.Second).String())
		}
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// mayTell says whether to tell that ClickHouse is waited for: once, whoever
// waits, until a request succeeds.
func (db *DB) mayTell() bool { return db.toldWait.CompareAndSwap(false, true) }

// jitter is the pause before the n-th repetition: anything between nothing and
// a bound that doubles, so that many waiters do not come back at once.
func jitter(n int) time.Duration {
	bound := longPause
	if n < 6 {
		bound = firstPause << n
	}
	return rand.N(bound) + time.Millisecond
}
