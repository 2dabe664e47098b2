//go:build unix

package races

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// reading is the input of an operation that only reads.
type reading struct{}

// counting is a counter that is added to, one at a time. An addition of which
// the caller was told that it may be lost is there or not, at any time after
// its call; but where it is there, it came right after what it had read.
var counting = porcupine.NondeterministicModel{
	Init: func() []any { return []any{0} },
	Step: func(state, input, output any) []any {
		now, out := state.(int), output.(op)
		_, read := input.(reading)
		switch {
		case read && out.N == now:
			return []any{now}
		case read:
			return nil
		case out.N == now+1:
			if !out.Sure {
				return []any{now, now + 1}
			}
			return []any{now + 1}
		case !out.Sure:
			return []any{now}
		}
		return nil
	},
}

// check says whether all additions together, and what was there in the end,
// are what a counter would show that one process after the other adds to.
func check(t *testing.T, all []*process, end int) {
	t.Helper()
	var history []porcupine.Operation
	var last int64
	sure, unsure := 0, 0
	for i, p := range all {
		for _, o := range p.ops {
			last = max(last, o.Return)
			switch {
			case o.Sure:
				sure++
			case o.N == 0: // lost before anything was written
				continue
			default:
				unsure++
				o.Return = math.MaxInt64
			}
			history = append(history, porcupine.Operation{ClientId: i, Call: o.Call, Return: o.Return, Output: o})
		}
	}
	history = append(history, porcupine.Operation{ClientId: len(all), Input: reading{}, Call: last + 1, Return: last + 2, Output: op{N: end}})
	if end < sure || end > sure+unsure {
		t.Errorf("the counter is at %d after %d additions that were acknowledged and %d that may be lost", end, sure, unsure)
	}
	model := counting.ToModel()
	if result := porcupine.CheckOperationsTimeout(model, history, 20*time.Second); result != porcupine.Ok {
		t.Errorf("the history of %d additions is %s: not that of one after the other", len(history), result)
	}
}
