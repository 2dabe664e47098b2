package lock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate/lock"
)

const (
	lease = 10 * time.Second
	noon  = lock.Millis(1_700_000_000_000) // the server's clock in most looks
)

// ticks is d in the log's milliseconds.
func ticks(d time.Duration) lock.Millis { return lock.Millis(d.Milliseconds()) }

// row is a claim that was made a second before noon and lives on.
func row(id string, seq uint64, change ...func(*lock.Row)) lock.Row {
	r := lock.Row{
		ClaimID: id, Seq: seq, LockedAt: noon - 1000, ExpiresAt: noon - 1000 + ticks(lease), Ceiling: noon - 1000 + ticks(lease),
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func waiting(r *lock.Row)  { r.Waiting, r.Ceiling = true, 0 }
func released(r *lock.Row) { r.Released, r.Ceiling = true, 0 }
func expired(r *lock.Row) {
	r.LockedAt = noon - ticks(lease) - 1
	r.ExpiresAt, r.Ceiling = noon-1, noon-1
}

func ceiling(at lock.Millis) func(*lock.Row) { return func(r *lock.Row) { r.Ceiling = at } }

func TestDecide(t *testing.T) {
	me := lock.Me{ID: "!m", Seq: 2, Deadline: time.Minute}
	newcomer, ticket := me, me
	newcomer.First = true
	ticket.Ticket = true
	mine := row("!m", 2)
	tests := []struct {
		name  string
		me    lock.Me
		rows  []lock.Row
		skew  time.Duration
		want  lock.Outcome
		block string // id of the blocker
		ahead int
	}{
		{name: "alone", me: newcomer, rows: []lock.Row{mine}, want: lock.Acquired},
		{name: "my row is not there", me: me, want: lock.Announce},
		{name: "only an older row of mine is there", me: lock.Me{ID: "!m", Seq: 4, Deadline: time.Minute}, rows: []lock.Row{mine}, want: lock.Announce},
		{name: "my row is expired", me: me, rows: []lock.Row{row("!m", 2, expired)}, want: lock.Announce},
		{name: "the answer came at my deadline", me: lock.Me{ID: "!m", Seq: 2, Deadline: time.Second}, rows: []lock.Row{mine}, want: lock.Announce},
		{name: "my row is a ticket still", me: me, rows: []lock.Row{row("!m", 2, waiting)}, want: lock.Announce},
		{name: "somebody put a tombstone on me", me: me, rows: []lock.Row{mine, row("!m", 3, released)}, want: lock.Broken},
		{name: "somebody broke me", me: me, rows: []lock.Row{mine, row("!m/broken", 1, released)}, want: lock.Broken},
		{name: "broken, whatever comes later", me: lock.Me{ID: "!m", Seq: 9, Deadline: time.Minute}, rows: []lock.Row{row("!m", 9), row("!m/broken", 1, released)}, want: lock.Broken},
		{name: "an earlier attempt of mine was broken", me: lock.Me{ID: "!m", Seq: 1 << 32, Deadline: time.Minute}, rows: []lock.Row{row("!m", 1<<32), row("!m/broken", 4, released)}, want: lock.Acquired},
		{name: "this attempt of mine was broken", me: lock.Me{ID: "!m", Seq: 1<<32 + 4, Deadline: time.Minute}, rows: []lock.Row{row("!m", 1<<32+4), row("!m/broken", 1<<32, released)}, want: lock.Broken},
		{name: "another's earlier attempt was broken", me: me, rows: []lock.Row{mine, row("!a", 2<<32), row("!a/broken", 1<<32+2, released)}, want: lock.Blocked, block: "!a"},
		{name: "broken, and my rows are gone", me: me, rows: []lock.Row{row("!m/broken", 1, released)}, want: lock.Broken},

		{name: "an older claim", me: me, rows: []lock.Row{mine, row("!a", 2)}, want: lock.Blocked, block: "!a"},
		{name: "a younger claim blocks as well", me: me, rows: []lock.Row{mine, row("!z", 2)}, want: lock.Blocked, block: "!z"},
		{name: "the oldest of several claims is named", me: me, rows: []lock.Row{row("!z", 2), mine, row("!a", 2), row("!k", 2)}, want: lock.Blocked, block: "!a"},
		{name: "a released claim", me: me, rows: []lock.Row{mine, row("!a", 2), row("!a", 3, released)}, want: lock.Acquired},
		{name: "rows come in any order", me: me, rows: []lock.Row{row("!a", 3, released), mine, row("!a", 2)}, want: lock.Acquired},
		{name: "a renewal after a tombstone", me: me, rows: []lock.Row{row("!a", 3, released), mine, row("!a", 4)}, want: lock.Blocked, block: "!a"},
		{name: "a repeated row and its tombstone", me: me, rows: []lock.Row{mine, row("!a", 3, released), row("!a", 3)}, want: lock.Acquired},
		{name: "a broken claim", me: me, rows: []lock.Row{mine, row("!a", 2), row("!a/broken", 1, released)}, want: lock.Acquired},
		{name: "a broken claim that renews", me: me, rows: []lock.Row{mine, row("!a/broken", 1, released), row("!a", 8)}, want: lock.Acquired},
		{name: "an expired claim", me: me, rows: []lock.Row{mine, row("!a", 2, expired)}, want: lock.TakeOver},
		{name: "an expired claim, clocks a minute apart", me: me, rows: []lock.Row{mine, row("!a", 2, expired)}, skew: time.Minute, want: lock.Blocked, block: "!a"},
		{name: "a repeated row lives as long as the longest", me: me, rows: []lock.Row{mine, row("!a", 2, expired), row("!a", 2)}, want: lock.Blocked, block: "!a"},

		{name: "a newcomer behind a younger ticket", me: newcomer, rows: []lock.Row{mine, row("!z", 2, waiting)}, want: lock.Blocked, block: "!z"},
		{name: "a newcomer behind an older ticket", me: newcomer, rows: []lock.Row{mine, row("!a", 2, waiting)}, want: lock.Blocked, block: "!a", ahead: 1},
		{name: "announced again, a younger ticket does not count", me: me, rows: []lock.Row{mine, row("!z", 2, waiting)}, want: lock.Acquired},
		{name: "announced again, but an older ticket came up", me: me, rows: []lock.Row{mine, row("!a", 2, waiting)}, want: lock.Blocked, block: "!a", ahead: 1},
		{name: "a ticket behind a claim", me: ticket, rows: []lock.Row{row("!m", 2, waiting), row("!a", 2)}, want: lock.Blocked, block: "!a"},
		{name: "the oldest ticket, nobody holds", me: ticket, rows: []lock.Row{row("!m", 2, waiting), row("!z", 2, waiting)}, want: lock.Announce},
		{name: "the third ticket, nobody holds", me: ticket, rows: []lock.Row{row("!m", 2, waiting), row("!a", 2, waiting), row("!b", 2, waiting)}, want: lock.Blocked, block: "!a", ahead: 2},
		{name: "tickets that died do not count", me: ticket, rows: []lock.Row{row("!m", 2, waiting), row("!a", 2, waiting, expired)}, want: lock.Announce},
		{name: "a newcomer and a dead ticket", me: newcomer, rows: []lock.Row{mine, row("!a", 2, waiting, expired)}, want: lock.Acquired},

		{name: "a claim of the older plugin", me: me, rows: []lock.Row{mine, row("6f-old", 0)}, want: lock.Blocked, block: "6f-old"},
		{name: "an expired one of the older plugin", me: me, rows: []lock.Row{mine, row("6f-old", 0, expired)}, want: lock.Acquired},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			look := lock.Look{Snapshot: lock.Snapshot{Now: noon, Rows: test.rows}, Sent: 990 * time.Millisecond, Received: time.Second}
			d := lock.Rules{Skew: test.skew}.Decide(look, test.me, lock.Memory{})
			if d.Outcome != test.want || d.Blocker.ID != test.block || d.Ahead != test.ahead {
				t.Errorf("got %s, blocked by %q, %d ahead; want %s, %q, %d", d.Outcome, d.Blocker.ID, d.Ahead, test.want, test.block, test.ahead)
			}
		})
	}
}

func TestFloor(t *testing.T) {
	me := lock.Me{ID: "!m", Seq: 2, Deadline: time.Minute}
	tests := []struct {
		name string
		rows []lock.Row
		want lock.Millis
	}{
		{"alone: the server's now", nil, noon},
		{"a tombstone below now", []lock.Row{row("!a", 3, released, ceiling(noon-5))}, noon},
		{"a tombstone ahead of now", []lock.Row{row("!a", 3, released, ceiling(noon+5))}, noon + 6},
		{"a dead claim's ceiling", []lock.Row{row("!a", 2, expired, ceiling(noon+100))}, noon + 101},
		{"a broken claim's ceiling", []lock.Row{row("!a", 8, ceiling(noon+100)), row("!a/broken", 1, released, ceiling(noon+50))}, noon + 101},
		{"a broken claim whose rows are gone", []lock.Row{row("!a/broken", 1, released, ceiling(noon+50))}, noon + 51},
		{"the greater of a repeated row", []lock.Row{row("!a", 3, released, ceiling(noon+5)), row("!a", 3, released, ceiling(noon+2))}, noon + 6},
		{"an older row does not count", []lock.Row{row("!a", 3, released, ceiling(noon+5)), row("!a", 2, ceiling(noon+99))}, noon + 6},
		{"mine does not count", []lock.Row{row("!m", 1, ceiling(noon+9000))}, noon},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			look := lock.Look{Snapshot: lock.Snapshot{Now: noon, Rows: append(test.rows, row("!m", 2))}, Received: time.Second}
			if d := (lock.Rules{}).Decide(look, me, lock.Memory{}); d.Floor != test.want {
				t.Errorf("floor is now%+d ms, want now%+d ms", d.Floor-noon, test.want-noon)
			}
		})
	}
}

// I must not count on the better one of my own repeated rows: a merge may keep the other.
func TestOwnRepeatedRow(t *testing.T) {
	rows := []lock.Row{row("!m", 2, ceiling(noon+10)), row("!m", 2, ceiling(noon+30)), row("!m", 2, ceiling(noon+20))}
	look := lock.Look{Snapshot: lock.Snapshot{Now: noon, Rows: rows}, Received: time.Second}
	d := lock.Rules{}.Decide(look, lock.Me{ID: "!m", Seq: 2, Deadline: time.Minute}, lock.Memory{})
	if d.Outcome != lock.Acquired || d.Mine.Ceiling != noon+10 {
		t.Errorf("got %s with ceiling now%+d ms, want acquired with +10", d.Outcome, d.Mine.Ceiling-noon)
	}
}

// A holder whose expiry says nothing, because the server's clock was set back
// by an hour, is dead when it has shown one row for 1.25 of its leases.
func TestUnchangedClaimIsDead(t *testing.T) {
	me := lock.Me{ID: "!m", Seq: 2, Deadline: time.Hour}
	future := func(r *lock.Row) { r.LockedAt += 3_600_000; r.ExpiresAt += 3_600_000 }
	mem := lock.Memory{}
	look := func(sent time.Duration, seq uint64) lock.Outcome {
		snap := lock.Snapshot{Now: noon, Rows: []lock.Row{row("!m", 2), row("!a", seq, future)}}
		return lock.Rules{}.Decide(lock.Look{Snapshot: snap, Sent: sent, Received: sent + time.Second}, me, mem).Outcome
	}
	for _, step := range []struct {
		sent time.Duration
		seq  uint64
		want lock.Outcome
	}{
		{0, 2, lock.Blocked},
		{13 * time.Second, 2, lock.Blocked},         // 12 s after the first answer
		{13400 * time.Millisecond, 4, lock.Blocked}, // it renewed
		{26 * time.Second, 4, lock.Blocked},
		{26899 * time.Millisecond, 4, lock.Blocked},
		{26900 * time.Millisecond, 4, lock.TakeOver}, // 12.5 s after the first answer with this row
	} {
		if got := look(step.sent, step.seq); got != step.want {
			t.Errorf("sent at %s: %s, want %s", step.sent, got, step.want)
		}
	}
}

func TestDecideNamesTheDeadAndTheYoungest(t *testing.T) {
	rows := []lock.Row{
		row("!z", 2, expired), row("!m", 2), row("!b", 2, waiting), row("!c", 2, waiting), row("!a", 2, expired),
		row("!n", 2, waiting, expired), row("old", 0),
	}
	look := lock.Look{Snapshot: lock.Snapshot{Now: noon, Rows: rows}, Received: time.Second}
	d := lock.Rules{}.Decide(look, lock.Me{ID: "!a0", Seq: 2, Deadline: time.Minute}, lock.Memory{})
	var dead []string
	for _, c := range d.Dead {
		dead = append(dead, c.ID)
	}
	if diff := cmp.Diff([]string{"!a", "!z"}, dead); diff != "" {
		t.Errorf("dead claims that may have a holder (-want +got):\n%s", diff)
	}
	if d.Youngest != "!m" || !d.Tickets || !d.Foreign || !d.Others {
		t.Errorf("youngest %q, foreign %v, others %v", d.Youngest, d.Foreign, d.Others)
	}
}

func TestClaims(t *testing.T) {
	snap := lock.Snapshot{Now: noon, Rows: []lock.Row{
		row("!b", 4), row("!a", 2), row("!b", 2), row("!a/broken", 1, released, func(r *lock.Row) { r.Holder = `{"host":"ops","pid":7}` }),
	}}
	claims := snap.Claims()
	if len(claims) != 2 || claims[0].ID != "!a" || claims[1].ID != "!b" || claims[1].Seq != 4 {
		t.Fatalf("got %+v", claims)
	}
	if a := claims[0]; !a.Broken || !a.Released || a.BrokenBy.Host != "ops" || (lock.Rules{}).Live(a, noon) {
		t.Errorf("a broken claim reads as %+v", a)
	}
	if !(lock.Rules{}).Live(claims[1], noon) {
		t.Error("a live claim is not live")
	}
}
