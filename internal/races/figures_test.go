//go:build unix

package races

import (
	"fmt"
	"strconv"
	"strings"
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

// Two hundred work at once, each on an id of its own: none fails, and what
// that leaves in the tables is bounded, also what was over before.
func TestTwoHundredAtOnce(t *testing.T) {
	const stores, gone = 200, 5000
	server := chtest.Target(t)
	conf := setupFor(t, server)
	conf.Linger = 0
	// Two hundred statements at once take this engine up to two seconds on two
	// processors, and an update has four, one after the other.
	conf.Lease = time.Minute
	first := open(t, conf)
	if err := first.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.SQL(t, fmt.Sprintf("INSERT INTO `%s`.state_lock (state_id, lock_id, seq, released, locked_at, expires_at)"+
		" SELECT 'gone', '!' || toString(number), 3, 1, now64(3) - 400, now64(3) - 400 FROM numbers(%d)", conf.Schema, gone))

	stop, sampled := make(chan struct{}), make(chan map[string]int)
	go func() { sampled <- mostParts(t, server, conf.Schema, stop) }()
	began := time.Now()
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() {
			s, err := chstate.Open(t.Context(), conf.options())
			if err == nil {
				st := state(i)
				st.ID = fmt.Sprint("id-", i)
				err = s.Update(t.Context(), st)
				_ = s.Close() // what it cannot give back in its 3 s frees itself
			}
			if err != nil {
				t.Errorf("store %d: %v", i, err)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	close(stop)
	most := <-sampled
	t.Logf("%d stores took %s; most active parts: %v", stores, took, most)
	t.Logf("in the end:\n%s", server.SQL(t, "SELECT table, countIf(active), countIf(NOT active), sumIf(rows, active) FROM system.parts WHERE database = '"+conf.Schema+"' GROUP BY table ORDER BY table"))
	for table, n := range most {
		if n >= 100 {
			t.Errorf("the table %s had %d active parts", table, n)
		}
	}
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		left := server.SQL(t, "SELECT count() FROM `"+conf.Schema+"`.state_lock WHERE state_id = 'gone'")
		if left == "0" {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Errorf("%s rows of %d that were over before are still there", left, gone)
			break
		}
	}
	if n := server.SQL(t, "SELECT uniqExact(state_id) FROM `"+conf.Schema+"`.state"); n != strconv.Itoa(stores) {
		t.Errorf("%s states are there", n)
	}
}

// mostParts samples how many active parts each table has.
func mostParts(t *testing.T, server chtest.Server, schema string, stop <-chan struct{}) map[string]int {
	most := map[string]int{}
	for {
		out, err := server.Do("SELECT table, count() FROM system.parts WHERE active AND database = '" + schema + "' GROUP BY table")
		if err != nil {
			t.Error(err)
			return most
		}
		for line := range strings.Lines(out) {
			table, count, _ := strings.Cut(strings.TrimSpace(line), "\t")
			n, _ := strconv.Atoi(count)
			most[table] = max(most[table], n)
		}
		select {
		case <-stop:
			return most
		case <-time.After(100 * time.Millisecond):
		}
	}
}
