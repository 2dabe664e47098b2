package sim

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/chstate/chstate/lock"
)

// climate is what a world's faults are like; it is drawn from the seed. Each
// kind of fault is missing from a part of all worlds, so that none hides another.
type climate struct {
	lease     time.Duration
	linger    time.Duration
	wait      time.Duration
	processes int
	workers   int           // goroutines of each process that want the lock
	storm     time.Duration // how long there are faults; calm follows

	slow    float64 // part of the requests that take seconds rather than milliseconds
	lost    float64 // part of the requests whose answer is lost
	cut     float64 // part of the requests that are never executed
	late    float64 // part of the requests that are given up and executed much later
	repeats float64 // part of the requests that are executed again, some time later
	stops   float64 // chance of a process to be stopped, at each step
	hot     string  // a kind of request that all this happens to ten times as often
	kills   float64 // kills of a process, per minute
	cancels float64 // part of the Acquires and of the writes that are cancelled
	deletes float64 // part of the operations that delete
	outside float64 // writes without the lock, per minute
	merges  bool
	expiry  bool // TTL
	idle    bool // long pauses between uses, longer than the TTL

	jumps    jumps
	replicas replicas
}

// jumps of the server's clock.
type jumps int

const (
	steady jumps = iota
	back         // now and then, and forth again by a little
	wild         // back and forth by up to an hour
)

// replicas that answer.
type replicas int

const (
	single  replicas = iota
	quorum           // consistent reads, clocks up to a minute apart
	lagging          // reads that lag by less than Options.Settle
)

// maxLag is how far lagging replicas are behind; settleFor is longer.
const (
	maxLag    = 900 * time.Millisecond
	settleFor = time.Second
	maxSkew   = time.Minute
)

func newClimate(r *rand.Rand) climate {
	sometimes := func(most float64) float64 {
		switch r.IntN(3) {
		case 0:
			return 0
		case 1:
			return most * r.Float64() / 4
		}
		return most * r.Float64()
	}
	c := climate{
		lease:     time.Duration(2+r.IntN(9)) * time.Second,
		wait:      time.Hour,
		processes: 2 + r.IntN(3),
		workers:   1 + r.IntN(4)/3,
		storm:     time.Duration(20+r.IntN(40)) * time.Second,
		slow:      sometimes(0.3),
		lost:      sometimes(0.2),
		cut:       sometimes(0.2),
		late:      sometimes(0.15),
		repeats:   sometimes(0.2),
		stops:     sometimes(0.02),
		kills:     sometimes(8),
		cancels:   sometimes(0.5),
		deletes:   sometimes(0.4),
		outside:   sometimes(10),
		merges:    r.IntN(3) > 0,
		expiry:    r.IntN(2) == 0,
		idle:      r.IntN(10) == 0,
	}
	if r.IntN(2) == 0 {
		c.hot = []string{"announcement", "renewal", "tombstone", "ticket", "look", "write", "read"}[r.IntN(7)]
	}
	if r.IntN(2) == 0 {
		c.linger = time.Second
	}
	if r.IntN(3) == 0 {
		c.wait = time.Duration(3+r.IntN(20)) * time.Second
	}
	switch r.IntN(10) {
	case 0, 1:
		c.jumps = back
	case 2, 3, 4:
		c.jumps = wild
	}
	switch r.IntN(10) {
	case 0, 1:
		c.replicas = quorum
	case 2:
		c.replicas = lagging
		c.linger, c.jumps = 0, steady
		c.lease = max(c.lease, lock.SettlesInLease*settleFor)
	}
	if c.jumps != steady || c.replicas == quorum {
		// Who waits for less cannot find out that a claim stands unchanged.
		c.wait = max(c.wait, 2*c.lease)
	}
	return c
}

// hotter is a copy of the climate for requests of the hot kind.
func (c *climate) hotter() *climate {
	h := *c
	for _, p := range []*float64{&h.slow, &h.lost, &h.cut, &h.late, &h.repeats, &h.stops} {
		*p = min(10**p, 0.4)
	}
	return &h
}

// of gives the climate for a request, by what it is called.
func (c *climate) of(what string) *climate {
	if c.hot != "" && strings.Contains(what, c.hot) {
		return c.hotter()
	}
	return c
}

// plan is what happens to one request.
type plan struct {
	there, back time.Duration
	executed    bool
	answered    bool
	patience    time.Duration // when the connection is cut, unless answered
	again       []time.Duration
}

// plan draws the fate of a request. In calm everything takes milliseconds.
func (c *climate) plan(r *rand.Rand, calm bool) plan {
	quick := func() time.Duration { return 500*time.Microsecond + time.Duration(r.Int64N(int64(4*time.Millisecond))) }
	p := plan{there: quick(), back: quick(), executed: true, answered: true, patience: c.lease + time.Duration(r.Int64N(int64(20*time.Second)))}
	if calm {
		return p
	}
	long := func() time.Duration { return time.Duration(r.Float64() * r.Float64() * float64(3*c.lease)) }
	if r.Float64() < c.slow {
		p.there = long()
	}
	if r.Float64() < c.slow {
		p.back = long()
	}
	switch x := r.Float64(); {
	case x < c.lost:
		p.answered, p.patience = false, p.there+long()
	case x < c.lost+c.cut:
		p.executed, p.answered, p.patience = false, false, long()/4
	case x < c.lost+c.cut+c.late:
		p.answered, p.patience = false, quick()
		p.there = time.Duration(r.Float64() * r.Float64() * float64(100*time.Second))
	}
	for p.executed && r.Float64() < c.repeats {
		p.again = append(p.again, time.Duration(r.Float64()*r.Float64()*float64(40*time.Second)))
	}
	return p
}

// stop is how long a process is stopped, when it is.
func (c *climate) stop(r *rand.Rand) time.Duration {
	return time.Duration(r.Float64() * r.Float64() * float64(3*c.lease))
}

// jump is the next jump of the server's clock from where it is.
func (c *climate) jump(r *rand.Rand, at time.Duration) time.Duration {
	size := []time.Duration{200 * time.Millisecond, 3 * time.Second, 15 * time.Second, 200 * time.Second, time.Hour}[r.IntN(5)]
	if c.expiry {
		size = min(size, 100*time.Second) // see "Not promised" in package lock: the TTL
	}
	by := time.Duration(r.Float64() * float64(size))
	switch {
	case c.jumps == back && r.IntN(4) > 0:
		return at - by
	case c.jumps == back:
		return at + c.lease/50
	case at != 0 && r.IntN(2) == 0:
		return 0
	case r.IntN(2) == 0:
		return by
	}
	return -by
}
