package sim

import (
	"hash/fnv"
	"math/rand/v2"
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
	if at != c.at {
		c.at = at
		clear(c.asked)
	}
	c.asked[purpose]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(mix(c.seed^h.Sum64()), mix(uint64(at)+c.asked[purpose]<<48)))
}

// mix spreads the bits of a seed (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
