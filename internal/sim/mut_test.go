package sim_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/chstate/chstate/internal/lockrules"
	"github.com/chstate/chstate/internal/sim"
)

func TestMut(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("MUT"))
	for _, m := range []struct {
		name string
		m    sim.Mutation
	}{
		{"alone", sim.Mutation{Off: lockrules.Alone}},
		{"deadline", sim.Mutation{Off: lockrules.Deadline}},
		{"seqorder", sim.Mutation{Off: lockrules.SeqOrder}},
		{"tombceil", sim.Mutation{Off: lockrules.TombstoneCeiling}},
		{"deadceil", sim.Mutation{Off: lockrules.DeadCeiling}},
		{"anchor", sim.Mutation{Off: lockrules.AnchorSent}},
		{"mark", sim.Mutation{Off: lockrules.Mark}},
		{"lookafter", sim.Mutation{Off: lockrules.LookAfterRenewal}},
		{"unchanged", sim.Mutation{Off: lockrules.Unchanged}},
		{"ceilcheck", sim.Mutation{Off: lockrules.CeilingCheck}},
		{"serverversion", sim.Mutation{ServerVersion: true}},
		{"readfirst", sim.Mutation{ReadFirst: true}},
		{"unbounded", sim.Mutation{UnboundedDelete: true}},
		{"noskew", sim.Mutation{NoSkew: true}},
		{"oneid", sim.Mutation{OneID: true}},
	} {
		found := 0
		first := ""
		kinds := map[byte]int{}
		for seed := range uint64(n) {
			r := sim.Run(t, seed, m.m)
			if len(r.Violations) > 0 {
				found++
				kinds[r.Violations[0][8]]++
				if first == "" {
					first = fmt.Sprintf("seed %d: %s", seed, r.Violations[0])
				}
			}
		}
		fmt.Println(m.name, found, "of", n, kinds, first)
	}
}
