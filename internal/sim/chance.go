package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// chance gives random numbers by what they are for and when, not by who asks
// first: two goroutines of one moment must not change a run by their order.
type chance struct {
	seed  uint64
	at    time.Duration
	asked map[string]uint64 // at that moment
}

func newChance(seed uint64) *chance { return &chance{seed: seed, asked: map[string]uint64{}} }

// of gives numbers for one purpose at a moment.
func (c *chance) of(purpose string, at time.Duration) *rand.Rand {
	return rand.New(c.source(purpose, 0, at))
}

// source is of for who asks.
func (c *chance) source(purpose string, who uint64, at time.Duration) *rand.PCG {
	if at != c.at {
		c.at = at
		clear(c.asked)
	}
	n := uint64(0) // of goroutines that are told apart each asks once
	if who == 0 {
		c.asked[purpose]++
		n = c.asked[purpose]
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.NewPCG(mix(c.seed^h.Sum64()^who), mix(uint64(at)+n<<48))
}

// mix spreads the bits of a seed (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// who tells goroutines of one process apart: by the names of the functions on
// their stacks. The lock starts goroutines of its own, and hands none of them a
// name; addresses and line numbers would differ with each build, and the seeds
// in rules_test.go with them.
func who() uint64 {
	var stack [64]uintptr
	pcs := stack[:runtime.Callers(2, stack[:])]
	key := uint64(0)
	for _, pc := range pcs {
		key = mix(key ^ uint64(pc))
	}
	if id, ok := stacks.Load(key); ok {
		return id.(uint64)
	}
	names := fnv.New64a()
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		_, _ = names.Write([]byte(f.Function + "\n"))
		if !more {
			break
		}
	}
	id := names.Sum64()
	stacks.Store(key, id)
	return id
}

// stacks keeps what who found out about a stack's addresses.
var stacks sync.Map
