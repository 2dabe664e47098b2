package locktest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate/lock"
)

// Run tests a log: that its rows come back as the lock counts on, and that the
// lock holds on it. newLog gives the log under test, a fresh one or the same;
// keys are never used twice. It takes a few seconds of real time.
func Run(t *testing.T, newLog func(t *testing.T) lock.Log) {
	s := suite{newLog: newLog}
	t.Run("Rows", func(t *testing.T) {
		t.Run("every field comes back", s.fields)
		t.Run("the server fills expiry and ceiling", s.filled)
		t.Run("an explicit ceiling is kept", s.ceilings)
		t.Run("the greatest seq stays", s.seqs)
		t.Run("a repeated row", s.repeated)
		t.Run("keys are kept apart", s.keys)
		t.Run("an unknown key", s.unknown)
		t.Run("a read sees every acknowledged append", s.sees)
		t.Run("many append at once", s.concurrent)
		t.Run("a cancelled request", s.cancelled)
	})
	t.Run("Lock", func(t *testing.T) {
		t.Run("lockers exclude each other", s.exclusion)
		t.Run("a release hands over", s.handOver)
		t.Run("a vanished holder is replaced", s.takeover)
		t.Run("a broken holder is told", s.broken)
	})
}

type suite struct {
	newLog func(t *testing.T) lock.Log
}

// newKey gives a key that no other test uses, on this log or a later one.
func newKey(t *testing.T) string { return fmt.Sprintf("%s %d", t.Name(), time.Now().UnixNano()) }

const testLease = 20 * time.Second

func claimID(n int) string { return fmt.Sprintf("!00000000-0000-7000-8000-%012d", n) }

func add(t *testing.T, log lock.Log, key string, recs ...lock.Record) {
	t.Helper()
	for _, rec := range recs {
		if err := log.Append(t.Context(), key, rec); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, log lock.Log, key string) lock.Snapshot {
	t.Helper()
	snap, err := log.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// last gives the row with the greatest seq of a claim.
func last(t *testing.T, snap lock.Snapshot, id string) lock.Row {
	t.Helper()
	var found *lock.Row
	for _, row := range snap.Rows {
		if row.ClaimID == id && (found == nil || row.Seq >= found.Seq) {
			found = &row
		}
	}
	if found == nil {
		t.Fatalf("no row of claim %s in %+v", id, snap.Rows)
	}
	return *found
}

func (s suite) fields(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	const ceiling lock.Millis = 1_900_000_000_123
	holder := "{\"host\":\"a\\\"b\",\"command\":\"tab\\tline\\n'quote' \\\\ {x:String} ä€😀 %s\"}\traw\ttab\nline \\N"
	recs := []lock.Record{
		{ClaimID: claimID(1), Seq: 2, Lease: testLease, Ceiling: ceiling, Holder: holder},
		{ClaimID: claimID(2), Seq: 4, Waiting: true, Lease: testLease},
		{ClaimID: claimID(3), Seq: 5, Released: true, Ceiling: ceiling},
		{ClaimID: claimID(4) + "/broken", Seq: 1, Waiting: true, Released: true, Lease: testLease, Ceiling: 1},
		{ClaimID: claimID(5), Seq: math.MaxUint64, Lease: time.Millisecond},
	}
	add(t, log, key, recs...)
	snap := read(t, log, key)
	for _, rec := range recs {
		got := last(t, snap, rec.ClaimID)
		want := lock.Row{
			ClaimID: rec.ClaimID, Seq: rec.Seq, Waiting: rec.Waiting, Released: rec.Released,
			LockedAt: got.LockedAt, ExpiresAt: got.LockedAt.Add(rec.Lease), Ceiling: rec.Ceiling, Holder: rec.Holder,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claim %s (-want +got):\n%s", rec.ClaimID, diff)
		}
	}
}

func (s suite) filled(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	before := read(t, log, key)
	add(t, log, key, lock.Record{ClaimID: claimID(1), Seq: 2, Lease: testLease, Ceiling: lock.ServerFills})
	began := time.Now()
	after := read(t, log, key)
	row := last(t, after, claimID(1))
	if row.LockedAt < before.Now || row.LockedAt > after.Now.Add(early(began)) {
		t.Errorf("stored at %d by the server's clock, which read %d before and %d after", row.LockedAt, before.Now, after.Now)
	}
	if row.ExpiresAt != row.LockedAt.Add(testLease) || row.Ceiling != row.ExpiresAt {
		t.Errorf("expires %d ms after it was stored, ceiling %d ms after; want %d", row.ExpiresAt-row.LockedAt, row.Ceiling-row.LockedAt, testLease.Milliseconds())
	}
}

func (s suite) ceilings(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	for i, ceiling := range []lock.Millis{0, 1, 946_684_800_000, 1_893_456_000_001, 4_102_444_800_000} {
		for _, released := range []bool{false, true} {
			add(t, log, key, lock.Record{ClaimID: claimID(i), Seq: 2, Lease: testLease, Ceiling: ceiling, Released: released})
			if got := last(t, read(t, log, key), claimID(i)); got.Ceiling != ceiling {
				t.Errorf("ceiling %d (released %v) reads as %d", ceiling, released, got.Ceiling)
			}
		}
	}
}

func (s suite) seqs(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	for _, seq := range []uint64{8, 2, 5, 4, 9, 8} { // in any order, some again
		add(t, log, key, lock.Record{ClaimID: claimID(1), Seq: seq, Lease: testLease, Ceiling: lock.Millis(seq), Released: seq%2 == 1})
	}
	if got := last(t, read(t, log, key), claimID(1)); got.Seq != 9 || got.Ceiling != 9 || !got.Released {
		t.Errorf("the last row is %+v, want seq 9", got)
	}
}

func (s suite) repeated(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	rec := lock.Record{ClaimID: claimID(1), Seq: 2, Lease: testLease, Ceiling: lock.ServerFills, Holder: "{}"}
	add(t, log, key, rec, rec, rec)
	if claims := read(t, log, key).Claims(); len(claims) != 1 || claims[0].Seq != 2 {
		t.Errorf("a row sent three times reads as %+v", claims)
	}
	// Insert deduplication must not swallow what restores an earlier row.
	add(t, log, key, lock.Record{ClaimID: claimID(1), Seq: 3, Released: true}, rec)
	if got := last(t, read(t, log, key), claimID(1)); got.Seq != 3 {
		t.Errorf("after a late repeat the last row is %+v", got)
	}
}

func (s suite) keys(t *testing.T) {
	log, base := s.newLog(t), newKey(t)
	ends := []string{
		"", " ", "a", "A", "\t", "\n", "\r\n", `\`, `\\`, `\t`, "'", "''", `"`, "`", "%", "_", "*", "?", "\x00", "\x00a",
		"ä", "a\u0308", "€😀", "{x:String}", "$1", ";--", "run:", "/broken", strings.Repeat("x", 4000),
	}
	for i, end := range ends {
		add(t, log, base+end, lock.Record{ClaimID: claimID(i), Seq: 2, Lease: testLease, Ceiling: lock.ServerFills})
	}
	for i, end := range ends {
		snap := read(t, log, base+end)
		if len(snap.Rows) != 1 || snap.Rows[0].ClaimID != claimID(i) {
			t.Errorf("key ending in %.20q has %+v, want claim %d alone", end, snap.Rows, i)
		}
	}
}

func (s suite) unknown(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	first := read(t, log, key)
	time.Sleep(3 * time.Millisecond)
	second := read(t, log, key)
	if len(first.Rows) != 0 || first.Now <= 0 || second.Now <= first.Now {
		t.Errorf("rows %v, the server's clock reads %d, then %d", first.Rows, first.Now, second.Now)
	}
}

// early is how much the clock of a Read may be behind at most, that was begun then.
func early(began time.Time) time.Duration { return 2*time.Since(began) + 10*time.Millisecond }

func (s suite) sees(t *testing.T) {
	writer, reader, key := s.newLog(t), s.newLog(t), newKey(t)
	add(t, writer, key, lock.Record{ClaimID: claimID(0), Seq: 2, Lease: testLease, Ceiling: lock.ServerFills})
	if len(read(t, reader, key).Rows) == 0 {
		reader = writer // newLog gives a log of its own each time
	}
	for i := range 30 {
		add(t, writer, key, lock.Record{ClaimID: claimID(1), Seq: uint64(2 * (i + 1)), Lease: testLease, Ceiling: lock.ServerFills})
		began := time.Now()
		snap := read(t, reader, key)
		row := last(t, snap, claimID(1))
		if row.Seq != uint64(2*(i+1)) {
			t.Fatalf("row %d was acknowledged, a read sent then shows seq %d", i+1, row.Seq)
		}
		if snap.Now.Add(early(began)) < row.LockedAt {
			t.Errorf("the clock reads %d in a look that shows a row of %d", snap.Now, row.LockedAt)
		}
	}
}

func (s suite) concurrent(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	const writers, each = 8, 5
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				err := log.Append(t.Context(), key, lock.Record{ClaimID: claimID(w), Seq: uint64(2 * (i + 1)), Lease: testLease, Ceiling: lock.ServerFills})
				if err != nil {
					t.Error(err)
				}
				if _, err := log.Read(t.Context(), key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	snap := read(t, log, key)
	for w := range writers {
		if got := last(t, snap, claimID(w)); got.Seq != 2*each {
			t.Errorf("writer %d: last row is %+v", w, got)
		}
	}
}

func (s suite) cancelled(t *testing.T) {
	log, key := s.newLog(t), newKey(t)
	read(t, log, key) // what is done once is done
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Append(ctx, key, lock.Record{ClaimID: claimID(1), Seq: 2, Lease: testLease}); err == nil {
		t.Error("a cancelled append is no error")
	}
	if _, err := log.Read(ctx, key); err == nil {
		t.Error("a cancelled read is no error")
	}
}

// sorted gives a sorted copy.
func sorted[T int | time.Duration](in []T) []T { return slices.Sorted(slices.Values(in)) }
