package chstate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/chstate/chstate"
)

// BenchmarkHandOver takes the time from the release of a hold to the hold of
// the one who waits, of another store.
func BenchmarkHandOver(b *testing.B) {
	o := options(b)
	first, second := open(b, o), open(b, o)
	h, err := first.Lock(b.Context(), "p")
	if err != nil {
		b.Fatal(err)
	}
	type had struct {
		hold *chstate.Hold
		at   time.Time
		err  error
	}
	var took []time.Duration
	for b.Loop() {
		next := make(chan had, 1)
		go func() {
			h, err := second.Lock(b.Context(), "p")
			next <- had{h, time.Now(), err}
		}()
		time.Sleep(250 * time.Millisecond) // it is in line, and its looks are out of step with us
		began := time.Now()
		h.Release()
		got := <-next
		if got.err != nil {
			b.Fatal(got.err)
		}
		took = append(took, got.at.Sub(began))
		h = got.hold
		first, second = second, first
	}
	h.Release()
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "ms/median")
	b.ReportMetric(ms(took[len(took)*95/100]), "ms/p95")
	b.ReportMetric(0, "ns/op") // mostly the sleep
}
