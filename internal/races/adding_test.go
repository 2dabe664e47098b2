//go:build unix

package races

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
)

// readNumber reads what is stored, by a process of its own.
func readNumber(t *testing.T, conf setup, id string) int {
	t.Helper()
	p := start(t, conf)
	p.must(order{Do: "lock", ID: id})
	n := p.must(order{Do: "read"})
	p.close()
	return n
}

// L04: eight processes, fifty additions each; the last of them joins late.
func TestReadAddWrite(t *testing.T) {
	t.Parallel()
	each, pause := 50, 200*time.Millisecond
	if raceDetector { // makes each process several times slower
		each = 15
	}
	conf := setupFor(t, chtest.Target(t))
	conf.Linger = 0 // as it is by default
	all := make([]*process, 8)
	for i := range all {
		all[i] = start(t, conf)
		all[i].must(order{Do: "warm"})
	}
	early, late := all[:7], all[7]
	for _, p := range early {
		p.tell(order{Do: "add", ID: "sum", N: each, Pause: pause})
	}
	time.Sleep(2 * time.Second)
	late.tell(order{Do: "add", ID: "sum", N: each, Pause: pause})
	for _, p := range all {
		if r := p.answer(); r.Err != "" {
			t.Errorf("add: %s", r.Text)
		}
		p.close()
	}
	end := readNumber(t, conf, "sum")
	if end != len(all)*each {
		t.Errorf("the sum is %d, want %d", end, len(all)*each)
	}
	check(t, all, end)
	if began, others := late.ops[0].Return, early[0].ops[each-1].Return; began > others {
		t.Error("the late joiner got its first turn after somebody had its last")
	}
}

// Merges take rows away while they are needed: each must leave what counts.
func TestMergesDuringHolds(t *testing.T) {
	t.Parallel()
	server := chtest.Target(t)
	conf := setupFor(t, server)
	conf.Lease = 3 * time.Second // renewals too
	all := make([]*process, 3)
	for i := range all {
		all[i] = start(t, conf)
		all[i].must(order{Do: "warm"})
	}
	stop := make(chan struct{})
	var merging sync.WaitGroup
	for _, table := range []string{"state", "state_lock"} {
		merging.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				time.Sleep(20 * time.Millisecond)
				if _, err := server.Do("OPTIMIZE TABLE `" + conf.Schema + "`." + table + " FINAL"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, p := range all {
		p.tell(order{Do: "add", ID: "sum", N: 10, Pause: 100 * time.Millisecond})
	}
	for _, p := range all {
		if r := p.answer(); r.Err != "" {
			t.Errorf("add: %s", r.Text)
		}
	}
	close(stop)
	merging.Wait()
	check(t, all, readNumber(t, conf, "sum"))
}

// L05 at any moment: processes stand still for longer than a lease, wherever
// they happen to be. What they are told was done, was done, and nothing of
// theirs shows over what came later.
func TestL05StoppedAnywhere(t *testing.T) {
	t.Parallel()
	conf := setupFor(t, chtest.Target(t))
	conf.Lease = 1500 * time.Millisecond
	all := make([]*process, 3)
	for i := range all {
		all[i] = start(t, conf)
		all[i].must(order{Do: "warm"})
	}
	for _, p := range all {
		p.tell(order{Do: "add", ID: "sum", N: 15, Pause: 50 * time.Millisecond})
	}
	for range 5 {
		p := all[rand.IntN(len(all))]
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		p.signal(syscall.SIGSTOP)
		time.Sleep(conf.Lease + time.Duration(rand.IntN(400))*time.Millisecond)
		p.signal(syscall.SIGCONT)
	}
	for _, p := range all {
		if r := p.answer(); r.Err != "" {
			t.Errorf("add: %s", r.Text)
		}
	}
	check(t, all, readNumber(t, conf, "sum"))
}
