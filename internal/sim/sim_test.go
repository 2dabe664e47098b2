package sim_test

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/chstate/chstate/internal/sim"
)

func TestTry(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SIM_SEEDS"))
	first, _ := strconv.Atoi(os.Getenv("SIM_FIRST"))
	twice := os.Getenv("SIM_TWICE") != ""
	var next, acq, wr, rd, bad, differ atomic.Int64
	t.Run("all", func(t *testing.T) {
		for w := range 2 {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for {
					i := next.Add(1) - 1
					if i >= int64(n) {
						return
					}
					seed := uint64(first) + uint64(i)
					r := sim.Run(t, seed, sim.Mutation{})
					acq.Add(int64(r.Acquired))
					wr.Add(int64(r.Writes))
					rd.Add(int64(r.Reads))
					if len(r.Violations) > 0 {
						k := bad.Add(1)
						if k < 10 {
							t.Errorf("seed %d: %s", seed, r.Violations[0])
						}
						if k == 1 {
							os.WriteFile("/tmp/w/sched.txt", []byte(r.Schedule), 0o644)
						}
					}
					if twice {
						if r2 := sim.Run(t, seed, sim.Mutation{}); r2.Schedule != r.Schedule {
							if differ.Add(1) == 1 {
								os.WriteFile("/tmp/w/a.txt", []byte(r.Schedule), 0o644)
								os.WriteFile("/tmp/w/b.txt", []byte(r2.Schedule), 0o644)
							}
						}
					}
				}
			})
		}
	})
	fmt.Println(bad.Load(), "bad;", acq.Load(), "leases", wr.Load(), "writes", rd.Load(), "reads; differ", differ.Load())
}
