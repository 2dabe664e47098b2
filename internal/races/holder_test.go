//go:build unix

package races

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
)

// grace is what a take-over may take beyond the lease.
const grace = 6 * time.Second

// takesOver sees that a process gets a lock in time whose holder, with that
// lease, is gone.
func takesOver(p *process, id string, lease time.Duration) {
	p.t.Helper()
	if took := lockTime(p, id); took > lease+grace {
		p.t.Errorf("free after %s, with a lease of %s", took, lease)
	}
}

// lockTime takes a lock and says how long that took.
func lockTime(p *process, id string) time.Duration {
	p.t.Helper()
	began := time.Now()
	p.must(order{Do: "lock", ID: id})
	return time.Since(began)
}

// L05, L06: the holder stands still past its lease. It is replaced, told so,
// writes nothing any more, and takes nothing away from its successor.
func TestL06StoppedHolder(t *testing.T) {
	t.Parallel()
	conf := setupFor(t, chtest.Target(t))
	short := conf.victim()
	holder, next := start(t, short), start(t, conf)
	next.must(order{Do: "warm"})
	holder.must(order{Do: "lock", ID: "p"})
	holder.must(order{Do: "write", N: 1})
	holder.signal(syscall.SIGSTOP)
	takesOver(next, "p", short.Lease)
	if n := next.must(order{Do: "read"}); n != 1 {
		t.Errorf("the successor reads %d", n)
	}
	next.must(order{Do: "write", N: 2})

	holder.signal(syscall.SIGCONT)
	holder.refused(order{Do: "write", N: 100}, "lost")
	holder.told(short.Lease)
	holder.must(order{Do: "release"})
	conf.Wait = 300 * time.Millisecond
	third := start(t, conf)
	third.refused(order{Do: "lock", ID: "p"}, "locked")
	next.must(order{Do: "write", N: next.must(order{Do: "read"}) + 1})
	next.must(order{Do: "release"})
	third.must(order{Do: "lock", ID: "p"})
	if n := third.must(order{Do: "read"}); n != 3 {
		t.Errorf("in the end there is %d, want 3", n)
	}
}

// A process that stands still within a write is told the truth about it.
func TestStoppedWriter(t *testing.T) {
	t.Parallel()
	conf := setupFor(t, chtest.Target(t))
	writer, next := start(t, conf.victim()), start(t, conf)
	for i := range 5 {
		id := fmt.Sprint("p", i)
		writer.must(order{Do: "lock", ID: id})
		writer.must(order{Do: "write", N: 1})
		writer.tell(order{Do: "write", N: 2})
		time.Sleep(time.Duration(i) * time.Millisecond)
		writer.signal(syscall.SIGSTOP)
		next.must(order{Do: "lock", ID: id})
		seen := next.must(order{Do: "read"})
		next.must(order{Do: "write", N: seen + 10})
		writer.signal(syscall.SIGCONT)
		switch r := writer.answer(); {
		case r.Err == "" && seen != 2:
			t.Errorf("%d ms: a write was acknowledged that the successor did not see", i)
		case r.Err != "" && r.Err != "lost":
			t.Errorf("%d ms: %s", i, r.Text)
		}
		if n := next.must(order{Do: "read"}); n != seen+10 {
			t.Errorf("%d ms: %d shows over the successor's %d", i, n, seen+10)
		}
		next.must(order{Do: "release"})
		writer.must(order{Do: "release"})
	}
}

// L06: a hold of many leases is renewed, with somebody waiting all the while.
func TestL06LongHold(t *testing.T) {
	t.Parallel()
	conf := setupFor(t, chtest.Target(t))
	conf.Lease = 3 * time.Second
	holder, waiter := start(t, conf), start(t, conf)
	holder.must(order{Do: "lock", ID: "p"})
	waiter.tell(order{Do: "lock", ID: "p"})
	for i := range 5 {
		time.Sleep(2 * time.Second)
		holder.must(order{Do: "write", N: i + 1})
	}
	select {
	case <-waiter.reports:
		t.Fatal("somebody else got the lock of a holder that lives")
	default:
	}
	holder.must(order{Do: "release"})
	if r := waiter.answer(); r.Err != "" {
		t.Fatal(r.Text)
	}
	if n := waiter.must(order{Do: "read"}); n != 5 {
		t.Errorf("the waiter reads %d, want 5", n)
	}
}

// L01: a holder that is killed, helper and all, is replaced a lease later.
func TestL01KilledHolder(t *testing.T) {
	t.Parallel()
	conf := setupFor(t, chtest.Target(t))
	short := conf.victim()
	holder, waiter, late := start(t, short), start(t, short), start(t, conf)
	late.must(order{Do: "warm"})
	waiter.must(order{Do: "warm"})
	holder.must(order{Do: "lock", ID: "p"})
	holder.must(order{Do: "write", N: 1})
	waiter.tell(order{Do: "lock", ID: "p"})
	holder.kill()
	killed := time.Now()
	if r := waiter.answer(); r.Err != "" {
		t.Fatal(r.Text)
	}
	if took := time.Since(killed); took > short.Lease+grace {
		t.Errorf("free after %s, with a lease of %s", took, short.Lease)
	}
	// The same for one that comes when nobody waits.
	waiter.kill()
	takesOver(late, "p", short.Lease)
	if n := late.must(order{Do: "read"}); n != 1 {
		t.Errorf("the last one reads %d, want 1", n)
	}
}

// Who only waited takes nothing along: neither when it gives up, nor when it
// is closed, ended or killed.
func TestWhoOnlyWaited(t *testing.T) {
	t.Parallel()
	conf := setupFor(t, chtest.Target(t))
	holder := start(t, conf)
	holder.must(order{Do: "lock", ID: "p"})
	brief := conf
	brief.Wait = 300 * time.Millisecond
	witness := start(t, brief)
	for _, c := range []struct {
		name string
		conf setup
		end  func(*process)
	}{
		{"gives up", brief, func(p *process) { p.answer(); p.close() }},
		{"is killed", conf, (*process).kill},
		{"is ended", conf, func(p *process) { p.signal(syscall.SIGTERM); <-p.gone }},
		{"loses the one it works for", conf, func(p *process) { _ = p.in.Close(); p.kill() }},
	} {
		p := start(t, c.conf)
		p.tell(order{Do: "lock", ID: "p"})
		time.Sleep(200 * time.Millisecond)
		c.end(p)
		witness.refused(order{Do: "lock", ID: "p"}, "locked")
		holder.must(order{Do: "write", N: 1})
	}
	holder.must(order{Do: "release"})
	if r := witness.do(order{Do: "lock", ID: "p"}); r.Err == "other" {
		t.Error(r.Text)
	}
	// Tickets of the dead may stand in the line for a lease, no longer.
	if took := lockTime(start(t, conf), "q"); took > grace {
		t.Errorf("another id took %s", took)
	}
}
