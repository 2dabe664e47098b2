package sim_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/chstate/chstate/internal/lockrules"
	"github.com/chstate/chstate/internal/sim"
)

func TestMut(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("MUT"))
	only := os.Getenv("ONLY")
	var mu sync.Mutex
	t.Run("x", func(t *testing.T) {
		for _, m := range []struct {
			name string
			m    sim.Mutation
		}{
			{"alone", sim.Mutation{Off: lockrules.Alone}},
			{"deadline", sim.Mutation{Off: lockrules.Deadline}},
			{"seqorder", sim.Mutation{Off: lockrules.SeqOrder}},
			{"arrival", sim.Mutation{Off: lockrules.ArrivalOrder}},
			{"tombceil", sim.Mutation{Off: lockrules.TombstoneCeiling}},
			{"deadceil", sim.Mutation{Off: lockrules.DeadCeiling}},
			{"anchor", sim.Mutation{Off: lockrules.AnchorSent}},
			{"mark", sim.Mutation{Off: lockrules.Mark}},
			{"lookafter", sim.Mutation{Off: lockrules.LookAfterRenewal}},
			{"unchanged", sim.Mutation{Off: lockrules.Unchanged}},
			{"ceilcheck", sim.Mutation{Off: lockrules.CeilingCheck}},
			{"ownleast", sim.Mutation{Off: lockrules.OwnLeast}},
			{"ceilrise", sim.Mutation{Off: lockrules.CeilingsRise}},
			{"stepback", sim.Mutation{Off: lockrules.StepBack}},
			{"serverversion", sim.Mutation{ServerVersion: true}},
			{"readfirst", sim.Mutation{ReadFirst: true}},
			{"unbounded", sim.Mutation{UnboundedDelete: true}},
			{"noskew", sim.Mutation{NoSkew: true}},
			{"oneid", sim.Mutation{OneID: true}},
		} {
			if only != "" && only != m.name {
				continue
			}
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				found, ran := 0, 0
				first := ""
				kinds := map[string]int{}
				for seed := range uint64(n) {
					ran++
					r := sim.Run(t, seed, m.m)
					if len(r.Violations) > 0 {
						found++
						k := string(r.Violations[0][8])
						kinds[k]++
						if kinds[k] == 1 {
							first += fmt.Sprintf("\n      seed %d: %s", seed, r.Violations[0])
						}
						if found >= 5 && len(kinds) > 0 && seed > 60 {
							break
						}
					}
				}
				mu.Lock()
				fmt.Println(m.name, found, "of", ran, kinds, first)
				mu.Unlock()
			})
		}
	})
}
