package sim_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/chstate/chstate/internal/sim"
)

// defaultSeeds is how many worlds are simulated unless SIM_SEEDS says otherwise.
var defaultSeeds uint64 = 2000

// repeats is how many worlds are run twice, of each kind.
var repeats uint64 = 100

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// parallel runs do for 0 to n-1 on all cores, until it says that it is enough.
func parallel(t *testing.T, n uint64, do func(t *testing.T, i uint64) bool) {
	// A world leaves much behind, and little of it lives: collect less often.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var next atomic.Uint64
	var enough atomic.Bool
	t.Run("worlds", func(t *testing.T) {
		for core := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(core), func(t *testing.T) {
				t.Parallel()
				for i := next.Add(1) - 1; i < n && !enough.Load(); i = next.Add(1) - 1 {
					if !do(t, i) {
						enough.Store(true)
					}
				}
			})
		}
	})
}

// TestPromises simulates SIM_SEEDS worlds, from SIM_FIRST on, with the lock as
// it is. SIM_SEED=n simulates one, and prints what happened in it.
func TestPromises(t *testing.T) {
	if os.Getenv("SIM_SEED") != "" {
		r := sim.Run(t, number(t, "SIM_SEED", 0), sim.Mutation{})
		t.Logf("\n%s", r.Schedule)
		for _, v := range r.Violations {
			t.Error(v)
		}
		return
	}
	var (
		first    = number(t, "SIM_FIRST", 0)
		seeds    = number(t, "SIM_SEEDS", defaultSeeds)
		acquired atomic.Int64
		writes   atomic.Int64
		reads    atomic.Int64
		taken    atomic.Int64
	)
	parallel(t, seeds, func(t *testing.T, i uint64) bool {
		r := sim.Run(t, first+i, sim.Mutation{})
		acquired.Add(int64(r.Acquired))
		writes.Add(int64(r.Writes))
		reads.Add(int64(r.Reads))
		taken.Add(int64(r.TakenOver))
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s\n%s\nonce more: SIM_SEED=%d go test -run TestPromises ./internal/sim",
				r.Seed, r.Violations[0], r.Schedule, r.Seed)
			return false
		}
		return true
	})
	t.Logf("%d worlds: %d leases, %d of them after a holder that had died, %d writes, %d reads",
		seeds, acquired.Load(), taken.Load(), writes.Load(), reads.Load())
	if n := int64(seeds); acquired.Load() < 5*n || taken.Load() < n/20 || writes.Load() < 10*n || reads.Load() < 5*n {
		t.Error("there is too little going on in these worlds")
	}
}
