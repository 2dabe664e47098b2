package sim_test

import (
	"strings"
	"testing"

	"github.com/chstate/chstate/internal/lockrules"
	"github.com/chstate/chstate/internal/sim"
)

// mutations are the rules that are switched off one by one. For each the
// simulation has to find a promise broken that the rule is there for. seed is
// one that does, to be quick; when it does not any more, others are tried. What
// chance does not find is in docs/adr/0103-rules-that-chance-does-not-find.md.
var mutations = []struct {
	rule     string
	without  sim.Mutation
	promises string
	seed     uint64
}{
	{"a claim is alone, it is not enough to have the lowest id", sim.Mutation{Off: lockrules.Alone}, "1", 1},
	{"answers count only before the deadline", sim.Mutation{Off: lockrules.Deadline}, "13", 138},
	{"versions are the hold's, not the server's time", sim.Mutation{ServerVersion: true}, "2", 4},
	{"a tombstone keeps the last version sent", sim.Mutation{Off: lockrules.TombstoneCeiling}, "2", 70},
	{"the ceilings of dead claims count", sim.Mutation{Off: lockrules.DeadCeiling}, "2", 314},
	{"rows are ordered by seq, not by the server's time", sim.Mutation{Off: lockrules.SeqOrder}, "1234", 40},
	{"rows are ordered by seq, not by arrival", sim.Mutation{Off: lockrules.ArrivalOrder}, "12", 753},
	{"each claim has an id of its own", sim.Mutation{OneID: true}, "123", 353},
	{"the state is read after the winning look", sim.Mutation{ReadFirst: true}, "3", 0},
	{"clocks are anchored before a request is sent", sim.Mutation{Off: lockrules.AnchorSent}, "1", 220},
	{"an expired claim is not dead to replicas whose clocks differ", sim.Mutation{NoSkew: true}, "1", 4},
	{"a delete removes only what is below its version", sim.Mutation{UnboundedDelete: true}, "2", 7},
	{"who takes over marks the dead and looks again", sim.Mutation{Off: lockrules.Mark}, "2", 25},
	{"an unchanged claim lives for 1.25 leases", sim.Mutation{Off: lockrules.Unchanged}, "1", 4},
	{"no version reaches the ceiling", sim.Mutation{Off: lockrules.CeilingCheck}, "2", 7},
	{"a newcomer whose clock is behind steps back", sim.Mutation{Off: lockrules.StepBack}, "4", 6},
}

// maxSeeds bounds the search for a world that breaks.
const maxSeeds = 4000

func TestEveryRuleIsNeeded(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			for i := range uint64(maxSeeds) {
				seed := i
				if i == 0 {
					seed = m.seed
				}
				r := sim.Run(t, seed, m.without)
				if len(r.Violations) > 0 && strings.ContainsAny(r.Violations[0][:len("promise 1")], m.promises) {
					t.Logf("%s: seed %d: %s", m.rule, seed, r.Violations[0])
					if i > 0 {
						t.Logf("%s: found after %d worlds; make %d the seed to try first", m.rule, i, seed)
					}
					return
				}
			}
			t.Errorf("%d worlds do not break without it", maxSeeds)
		})
	}
}

// TestSeedsRepeat runs worlds twice, whole ones and such that break: the second
// time all must happen as it did the first time, to the nanosecond.
func TestSeedsRepeat(t *testing.T) {
	for _, m := range []sim.Mutation{{Brief: true}, {Off: lockrules.Alone}} {
		parallel(t, repeats, func(t *testing.T, seed uint64) bool {
			if a, b := sim.Run(t, seed, m), sim.Run(t, seed, m); a.Schedule != b.Schedule {
				t.Errorf("seed %d, %+v: %s", seed, m, difference(a.Schedule, b.Schedule))
			}
			return true
		})
	}
	if sim.Run(t, 1, sim.Mutation{Brief: true}).Schedule == sim.Run(t, 2, sim.Mutation{Brief: true}).Schedule {
		t.Error("two seeds have one schedule")
	}
}

// TestTheSchedulerShows checks that TestSeedsRepeat would see what goes by the
// order in which goroutines happen to run.
func TestTheSchedulerShows(t *testing.T) {
	m := sim.Mutation{Brief: true, AnyOrder: true}
	for seed := range uint64(maxSeeds) {
		if a, b := sim.Run(t, seed, m), sim.Run(t, seed, m); a.Schedule != b.Schedule {
			return
		}
	}
	t.Errorf("%d worlds repeat also when the scheduler rules", maxSeeds)
}

// difference gives where two schedules part, with what came before.
func difference(a, b string) string {
	before, one, two := []string{}, strings.Split(a, "\n"), strings.Split(b, "\n")
	for len(one) > 0 && len(two) > 0 && one[0] == two[0] {
		before, one, two = append(before, one[0]), one[1:], two[1:]
	}
	return strings.Join(before[max(0, len(before)-5):], "\n") +
		"\nand then first\n" + strings.Join(one[:min(5, len(one))], "\n") +
		"\nbut the second time\n" + strings.Join(two[:min(5, len(two))], "\n")
}
