//go:build unix

package races

import (
	"sync"
	"testing"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

func open(t *testing.T, conf setup) *chstate.Store {
	t.Helper()
	s, err := chstate.Open(t.Context(), conf.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// Twenty wait for one id: they are served in the order of their arrival. How
// long that takes, over the sum of their holds, is a figure of the benchmark.
func TestTwentyWaiters(t *testing.T) {
	t.Parallel()
	const waiters, hold = 20, 400 * time.Millisecond
	conf := setupFor(t, chtest.Target(t))
	first := open(t, conf)
	h, err := first.Lock(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		order []int
	)
	for i := range waiters {
		s := open(t, conf)
		if err := s.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			h, err := s.Lock(t.Context(), "p")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			time.Sleep(hold)
			h.Release()
		})
		inLine(t, first, i+1)
	}
	began := time.Now()
	h.Release()
	all.Wait()
	t.Logf("%d holds of %s took %s", waiters, hold, time.Since(began))
	for i, n := range order {
		if i != n {
			t.Fatalf("served in the order %v", order)
		}
	}
}

// inLine waits until so many claims stand behind the holder.
func inLine(t *testing.T, s *chstate.Store, n int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		locks, err := s.LocksOf(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		waiting := 0
		for _, l := range locks {
			if l.Waiting {
				waiting++
			}
		}
		if waiting == n {
			return
		}
	}
	t.Fatalf("there are never %d in line", n)
}
