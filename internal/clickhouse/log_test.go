package clickhouse

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate/lock"

	"github.com/chstate/chstate/internal/faultproxy"
)

func TestLockLog(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	log := db.LockLog()
	empty, err := log.Read(ctx, "a")
	if err != nil || len(empty.Rows) != 0 || empty.Now < 1_700_000_000_000 {
		t.Fatalf("empty log: %+v, %v", empty, err)
	}
	records := []lock.Record{
		{ClaimID: "!1", Seq: 0, Waiting: true, Lease: 10 * time.Second, Ceiling: lock.ServerFills, Holder: `{"host":"a\tb","command":"x 'y' \"z\""}`},
		{ClaimID: "!1", Seq: 2, Lease: 20 * time.Second, Ceiling: empty.Now + 777, Holder: strings.Repeat("long ", 2000)},
		{ClaimID: "!1", Seq: 3, Released: true, Lease: time.Second, Ceiling: 0},
		{ClaimID: "!2", Seq: 18_446_744_073_709_551_615, Lease: 120 * time.Second, Ceiling: lock.ServerFills},
	}
	for _, r := range records {
		if err := log.Append(ctx, "a", r); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Append(ctx, "b", records[0]); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got, err := log.Read(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	latest := got.Now.Add(leastClock(time.Since(began)))
	bySeq := map[uint64]lock.Row{}
	for _, r := range got.Rows {
		bySeq[r.Seq] = r
		if r.LockedAt < empty.Now || r.LockedAt > latest {
			t.Errorf("row of %d, outside %d…%d", r.LockedAt, empty.Now, latest)
		}
	}
	for _, rec := range records {
		row, ok := bySeq[rec.Seq]
		if !ok {
			if rec.Seq == 0 || rec.Seq == 2 {
				continue // a merge has dropped what a later row replaces
			}
			t.Fatalf("no row %d in %+v", rec.Seq, got.Rows)
		}
		want := lock.Row{ClaimID: rec.ClaimID, Seq: rec.Seq, Waiting: rec.Waiting, Released: rec.Released, Holder: rec.Holder,
			LockedAt: row.LockedAt, ExpiresAt: row.LockedAt.Add(rec.Lease), Ceiling: rec.Ceiling}
		if rec.Ceiling == lock.ServerFills {
			want.Ceiling = want.ExpiresAt
		}
		if diff := cmp.Diff(want, row); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", rec.Seq, diff)
		}
	}
}

// TestRowsOfTheOlderPlugin: what it writes into the new table is a claim that
// lives for 300 s.
func TestRowsOfTheOlderPlugin(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	sqlOn(t, db, "INSERT INTO "+db.names.Lock()+" (state_id, lock_id) VALUES ('a', 'f1f7-uuid')")
	got, err := db.LockLog().Read(ctx, "a")
	if err != nil || len(got.Rows) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	row := got.Rows[0]
	want := lock.Row{ClaimID: "f1f7-uuid", LockedAt: row.LockedAt, ExpiresAt: row.LockedAt + 300_000, Ceiling: row.LockedAt + 300_000}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Error(diff)
	}
}

// TestTimeZonesDoNotShift is the field case L08.
func TestTimeZonesDoNotShift(t *testing.T) {
	ctx := ctxFor(t)
	db := open(t, func(c *Config) { c.ServerSettings = map[string]string{"session_timezone": "Asia/Tokyo"} })
	other := openWith(t, func() Config { c := db.cfg; c.ServerSettings = nil; return c }())
	if err := db.LockLog().Append(ctx, "a", lockRec(1)); err != nil {
		t.Fatal(err)
	}
	for _, reader := range []*DB{db, other} {
		got, err := reader.LockLog().Read(ctx, "a")
		if err != nil || len(got.Rows) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if age := got.Now - got.Rows[0].LockedAt; age < -2000 || age > 2000 { // a look's clock is early by the time of the look
			t.Errorf("a new row is %d ms old", age)
		}
	}
	if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: 1_700_000_000_123}); err != nil {
		t.Fatal(err)
	}
	for _, reader := range []*DB{db, other} {
		if row, _, err := reader.Get(ctx, "a"); err != nil || row.UpdatedAt != 1_700_000_000_123 {
			t.Errorf("version %d, %v", row.UpdatedAt, err)
		}
	}
}

// TestRoundTrips counts the statements of each call.
func TestRoundTrips(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	first := openWith(t, cfg)
	if err := first.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Kinds(), "hello probe CREATE CREATE CREATE CREATE probe"; got != want {
		t.Errorf("the first use sends %q, want %q", got, want)
	}

	db := openWith(t, cfg)
	for id, err := range db.IDs(ctx, "") {
		t.Fatal("not empty", id, err)
	}
	if got, want := w.Kinds(), "hello SELECT"; got != want {
		t.Errorf("a list sends %q, want %q", got, want)
	}
	for _, c := range []struct {
		name, want string
		call       func() error
	}{
		{"append, the first that writes", "probe INSERT", func() error { return db.LockLog().Append(ctx, "a", lockRec(1)) }},
		{"read", "SELECT", func() error { _, err := db.LockLog().Read(ctx, "a"); return err }},
		{"insert", "INSERT", func() error { return db.Insert(ctx, Row{ID: "a", UpdatedAt: 1}, Row{ID: "b", UpdatedAt: 1}) }},
		{"get", "SELECT", func() error { _, _, err := db.Get(ctx, "a"); return err }},
		{"newest", "SELECT", func() error { _, _, err := db.Newest(ctx, "a", "b"); return err }},
		{"archive", "INSERT", func() error { return db.Archive(ctx, "set", "me", "a") }},
		{"delete", "SELECT DELETE SELECT", func() error { return db.Delete(ctx, "a", 2) }},
		{"delete nothing", "SELECT", func() error { return db.Delete(ctx, "a", 2) }},
	} {
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := w.Kinds(); got != c.want {
			t.Errorf("%s sends %q, want %q", c.name, got, c.want)
		}
	}

	// Sixteen at once need more connections, and no more opening questions.
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 5 {
				if _, _, err := db.Get(ctx, "b"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := w.Kinds(); strings.Contains(got, "hello") || strings.Count(got, "SELECT") != 80 {
		t.Errorf("parallel reads send %q", got)
	}
}

// TestStateTextNeverInTheURL: it travels in the body, whatever its size.
func TestStateTextNeverInTheURL(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	w.On(func(_ http.ResponseWriter, r faultproxy.Request) bool {
		for _, values := range r.Params {
			for _, v := range values {
				if len(v) > 4000 || strings.Contains(v, "sensitive") {
					t.Errorf("the URL of %q carries %.60q…", r.Kind(), v)
				}
			}
		}
		return false
	})
	db := openWith(t, cfg)
	id := strings.Repeat("long id ", 2000)
	text := []byte(`{"a":"sensitive"}`)
	if err := db.Insert(ctx, Row{ID: id, Partial: text, Completed: text, UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Get(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := db.Archive(ctx, "set", "me", id); err != nil {
		t.Fatal(err)
	}
	if err := db.LockLog().Append(ctx, id, lockRec(1)); err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(ctx, id, 2); err != nil {
		t.Fatal(err)
	}
}

// A look whose SELECT is long in coming gives a clock that is not later than
// its rows, although the server read it before or after them.
func TestSlowLook(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	db := openWith(t, cfg)
	log := db.LockLog()
	if err := log.Append(ctx, "a", lockRec(1)); err != nil {
		t.Fatal(err)
	}
	w.On(faultproxy.When("SELECT", faultproxy.Delay(400*time.Millisecond, nil)))
	before, err := strconv.ParseInt(sqlOn(t, db, "SELECT toUnixTimestamp64Milli(now64(3))"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got, err := log.Read(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if ahead := got.Now - lock.Millis(before); ahead > 2 || got.Now.Add(2*took) < lock.Millis(before) {
		t.Errorf("the rows may be as old as the look's sending; its clock is %d ms after that, in a look of %s", ahead, took)
	}
}
