//go:build unix

package races

import (
	"fmt"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
)

// The older plugin's processes and ours add to one number, all at once, in
// tables that either of them has made. None is kept out for longer than it is
// willing to wait, and no addition is lost.
func TestOlderPluginAndOurs(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"theirs", "ours"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			server := chtest.Target(t)
			mine := setupFor(t, server)
			mine.Wait, mine.Linger = 30*time.Second, 0
			theirs := mine
			theirs.Older = true
			var all []*process
			if first == "ours" {
				p := start(t, mine)
				p.must(order{Do: "add", ID: "sum", N: 3}) // leaves claims that are over
				p.close()
				all = append(all, p)
				// In tables of ours nobody reckons with the older plugin, unless told.
				server.SQL(t, "ALTER TABLE `"+mine.Schema+"`.state_lock MODIFY COMMENT 'shared with the older plugin'")
			}
			n := len(all)
			for range 2 {
				all = append(all, start(t, theirs), start(t, mine))
			}
			all[n].must(order{Do: "warm"})
			all[n].tell(order{Do: "add", ID: "sum", N: 3})
			time.Sleep(500 * time.Millisecond)
			all[n+1].tell(order{Do: "add", ID: "sum", N: 4, Pause: 1500 * time.Millisecond})
			all[n+2].must(order{Do: "warm"})
			all[n+2].tell(order{Do: "add", ID: "sum", N: 3})
			all[n+3].tell(order{Do: "add", ID: "sum", N: 4, Pause: 1500 * time.Millisecond})
			for i, p := range all[n:] {
				if r := p.answer(); r.Err != "" {
					t.Errorf("process %d: %s\n%s", i, r.Text, lockTable(t, mine))
				}
				p.close()
			}
			check(t, all, readNumber(t, mine, "sum"))
			// Nothing of ours is left in the older plugin's way.
			got := server.SQL(t, "SELECT countIf(lock_id LIKE '!%'), count() FROM `"+mine.Schema+"`.state_lock")
			if got != "0\t0" {
				t.Errorf("rows of ours and of all left in the lock table: %s", got)
			}
		})
	}
}

// Ten processes find the older plugin's lock table at once, and a claim in it.
func TestTenFindAnOlderTable(t *testing.T) {
	t.Parallel()
	server := chtest.Target(t)
	conf := setupFor(t, server)
	theirs := conf
	theirs.Older = true
	start(t, theirs).must(order{Do: "warm"})
	table := "`" + conf.Schema + "`.state_lock"
	server.SQL(t, "INSERT INTO "+table+" (state_id, lock_id) VALUES ('held', '8c1f'), ('kept', '8c20')")
	server.SQL(t, "INSERT INTO "+table+" (state_id, lock_id, locked_at) VALUES ('stale', '8c21', now() - 400)")

	conf.Wait = 500 * time.Millisecond
	all := make([]*process, 10)
	for i := range all {
		all[i] = start(t, conf)
	}
	for _, p := range all {
		p.tell(order{Do: "lock", ID: "held"})
	}
	for i, p := range all {
		if r := p.answer(); r.Err != "locked" {
			t.Errorf("process %d: %q (%s), want it locked", i, r.Err, r.Text)
		}
	}
	if got := server.SQL(t, "SELECT sorting_key FROM system.tables WHERE database = '"+conf.Schema+"' AND name LIKE '%lock%'"); got != "state_id, lock_id" {
		t.Errorf("sorting keys of the lock tables: %q", got)
	}
	if got := server.SQL(t, "SELECT groupUniqArray(lock_id) FROM "+table+" WHERE lock_id NOT LIKE '!%' AND state_id IN ('kept', 'stale')"); got != "['8c20']" {
		t.Errorf("claims that were kept: %s", got)
	}
	server.SQL(t, "DELETE FROM "+table+" WHERE state_id = 'held' AND lock_id = '8c1f'")
	conf.Wait = 30 * time.Second
	for i := range 3 {
		p := start(t, conf)
		if n := p.must(order{Do: "add", ID: "held", N: 1}); n != 0 {
			t.Errorf("add answers %d", n)
		}
		p.close()
		if n := readNumber(t, conf, "held"); n != i+1 {
			t.Errorf("after %d additions there is %d", i+1, n)
		}
	}
	// On a table that was the older plugin's, nothing that is over stays in its way.
	for _, p := range all {
		p.close()
	}
	// Deletions are mutations, which may stand in line behind each other.
	count := func() string { return server.SQL(t, "SELECT count() FROM "+table+" WHERE lock_id LIKE '!%'") }
	for begin := time.Now(); count() != "0" && time.Since(begin) < 20*time.Second; {
		time.Sleep(100 * time.Millisecond)
	}
	if got := count(); got != "0" {
		t.Errorf("%s rows of claims that are over; %s", got, lockTable(t, conf))
	}
	p := start(t, theirs)
	p.must(order{Do: "add", ID: "held", N: 1})
	if n := readNumber(t, conf, "held"); n != 4 {
		t.Error(fmt.Sprint("the older plugin's addition is missing: ", n))
	}
}

// lockTable shows what is in a lock table, and the mutations that are not done.
func lockTable(t *testing.T, conf setup) string {
	return "lock table:\n" + conf.Server.SQL(t, "SELECT state_id, lock_id, seq, waiting, released, dateDiff('ms', locked_at, now64(3)) FROM `"+conf.Schema+"`.state_lock ORDER BY ALL") +
		"\nmutations:\n" + conf.Server.SQL(t, "SELECT table, command, create_time, latest_fail_reason FROM system.mutations WHERE NOT is_done AND database = '"+conf.Schema+"'")
}
