//go:build unix

package races

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
)

// Two hundred processes work at once, each on an id of its own, with the usual
// lease: none fails, none loses its lock, and what that leaves in the tables is
// bounded, also what was over before.
func TestTwoHundredAtOnce(t *testing.T) {
	const processes, updates, gone = 200, 2, 5000
	server := chtest.Target(t)
	conf := setupFor(t, server)
	conf.Linger = 0 // the usual one
	first := open(t, conf)
	if err := first.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.SQL(t, fmt.Sprintf("INSERT INTO `%s`.state_lock (state_id, lock_id, seq, released, locked_at, expires_at)"+
		" SELECT 'gone', '!' || toString(number), 3, 1, now64(3) - 400, now64(3) - 400 FROM numbers(%d)", conf.Schema, gone))

	all := crowd(t, conf, processes)
	most := mostParts(t, server, conf.Schema)
	for i, p := range all {
		p.tell(order{Do: "add", ID: fmt.Sprint("id-", i), N: updates, Await: true})
	}
	began := time.Now()
	if err := syscall.Kill(-all[0].cmd.Process.Pid, goSignal); err != nil {
		t.Fatal(err)
	}
	sure := 0
	for i, p := range all {
		if r := p.answer(); r.Err != "" {
			t.Errorf("process %d: %s", i, r.Text)
		}
		sure += p.sure()
	}
	took := time.Since(began)
	for _, p := range all {
		p.tell(order{Do: "close"})
	}
	for i, p := range all {
		if r := p.answer(); r.Err != "" {
			t.Errorf("process %d does not close: %s", i, r.Text)
		}
	}
	t.Logf("%d updates of %d processes took %s; most active parts: %v", sure, processes, took, most())
	if sure != processes*updates {
		t.Errorf("%d updates were acknowledged, want %d", sure, processes*updates)
	}
	for table, n := range most() {
		if n >= 100 {
			t.Errorf("the table %s had %d active parts", table, n)
		}
	}
	// An announcement, a tombstone, a renewal or two, and the updates: each makes
	// a part, and so does each merge of them.
	for table, n := range numbers(t, server, "SELECT table, countIf(NOT active) FROM system.parts WHERE database = '"+conf.Schema+"' GROUP BY table") {
		if n > 10*processes {
			t.Errorf("%d inactive parts are left of the table %s", n, table)
		}
	}
	rows := func(of string) int {
		n, err := strconv.Atoi(server.SQL(t, "SELECT count() FROM `"+conf.Schema+"`.state_lock WHERE state_id "+of))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := rows("!= 'gone'"); n > 5*processes {
		t.Errorf("%d rows are left of %d claims", n, processes)
	}
	for began := time.Now(); rows("= 'gone'") > 0; time.Sleep(200 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d rows of %d that were over before are still there", rows("= 'gone'"), gone)
		}
	}
	if n := server.SQL(t, "SELECT uniqExact(state_id) FROM `"+conf.Schema+"`.state"); n != strconv.Itoa(processes) {
		t.Errorf("%s states are there", n)
	}
}

// crowd starts many processes in one process group, for a signal to all of
// them, and waits until each is connected.
func crowd(t *testing.T, conf setup, n int) []*process {
	t.Helper()
	const batch = 8 // started at a time
	var all []*process
	group := syscall.SysProcAttr{Setpgid: true}
	for len(all) < n {
		some := make([]*process, min(batch, n-len(all)))
		for i := range some {
			attr := group
			some[i] = startIn(t, conf, &attr)
			if group.Pgid == 0 {
				group.Pgid = some[i].cmd.Process.Pid
			}
			some[i].tell(order{Do: "warm"})
		}
		for _, p := range some {
			if r := p.answer(); r.Err != "" {
				t.Fatal(r.Text)
			}
		}
		all = append(all, some...)
	}
	return all
}

// sure counts the updates that were acknowledged, and tells of the others.
func (p *process) sure() (n int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, op := range p.ops {
		if op.Sure {
			n++
			continue
		}
		p.t.Errorf("an update failed after %s: %s", time.Duration(op.Return-op.Call), op.Why)
	}
	return n
}

// mostParts samples how many active parts each table has, until it is asked for
// the most of them.
func mostParts(t *testing.T, server chtest.Server, schema string) (most func() map[string]int) {
	t.Helper()
	stop, sampled := make(chan struct{}), make(chan map[string]int, 1)
	go func() {
		most := map[string]int{}
		defer func() { sampled <- most }()
		for {
			for table, n := range numbers(t, server, "SELECT table, count() FROM system.parts WHERE active AND database = '"+schema+"' GROUP BY table") {
				most[table] = max(most[table], n)
			}
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	most = sync.OnceValue(func() map[string]int { close(stop); return <-sampled })
	t.Cleanup(func() { most() }) // also when the test ended early
	return most
}

// numbers runs a SELECT of a name and a number.
func numbers(t *testing.T, server chtest.Server, query string) map[string]int {
	out, err := server.Do(query)
	if err != nil {
		t.Error(err)
	}
	found := map[string]int{}
	for line := range strings.Lines(out) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), "\t")
		found[name], _ = strconv.Atoi(n)
	}
	return found
}
