package chstate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// Cases from the field: locks, and what replacing tables do. docs/cases.md
// says what each one is.

// L05: a process stands still between its look and its claim for 3 s (its
// claim travels that long). Nobody holds the id twice meanwhile.
func TestL05StoppedBetweenLookAndClaim(t *testing.T) {
	t.Parallel()
	slow, p := proxied(t)
	quick := slow
	srv := chtest.Target(t)
	quick.Host, quick.Port, quick.Secure = srv.Host, srv.Port, srv.Secure
	slow.Lock.Lease = 2 * time.Second // the other keeps the usual one: this may be a busy machine
	stopped, other := open(t, slow), open(t, quick)
	must(t, stopped.Prepare(t.Context()))
	p.On(faultproxy.When("INSERT", faultproxy.Times(1, faultproxy.Delay(3*time.Second, nil)), "_lock"))
	got := make(chan *chstate.Hold, 1)
	go func() {
		h, err := stopped.Lock(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	time.Sleep(500 * time.Millisecond)
	h, err := other.Lock(t.Context(), "a")
	must(t, err)
	for range 8 { // until well after the claim has arrived
		select {
		case <-got:
			t.Fatal("two holders at once")
		case <-time.After(500 * time.Millisecond):
		}
		must(t, h.Set(t.Context(), aState(1)))
	}
	h.Release()
	if h := <-got; h != nil {
		must(t, h.Set(t.Context(), aState(2)))
		h.Release()
	}
	wantState(t, other, "a", `{}`, `{"v":2}`)
}

// L06: a long holder renews its claim, and nobody gets past it. When it cannot
// renew it loses the lock, writes nothing more, and leaves its successor's
// claim alone.
func TestL06LongHolder(t *testing.T) {
	t.Parallel()
	slow, p := proxied(t)
	quick := slow
	slow.Lock.Lease = 3 * time.Second
	srv := chtest.Target(t)
	quick.Host, quick.Port, quick.Secure = srv.Host, srv.Port, srv.Secure
	quick.Lock.Wait = 3*slow.Lock.Lease + time.Second/2
	long, other := open(t, slow), open(t, quick)
	h, err := long.Lock(t.Context(), "a")
	must(t, err)
	_, err = other.Lock(t.Context(), "a") // for three leases
	wantError(t, err, chstate.ErrLocked, "last heard of")
	must(t, h.Set(t.Context(), aState(1)))

	p.On(faultproxy.Status(503, "")) // the holder is cut off
	second, err := other.Lock(t.Context(), "a")
	must(t, err)
	p.On(nil)
	must(t, second.Set(t.Context(), aState(2)))
	if err := h.Set(t.Context(), aState(3)); !errors.Is(err, chstate.ErrLockLost) {
		t.Errorf("the old holder wrote: %v", err)
	}
	h.Release()
	if second.Context().Err() != nil {
		t.Error("the old holder took the new one's lock away")
	}
	must(t, second.Set(t.Context(), aState(4)))
	second.Release()
	wantState(t, other, "a", `{}`, `{"v":4}`)
}

// L08: the server lives in Tokyo, the session in New York, the client where
// the tests run: a claim's age is its age.
func TestL08TimeZones(t *testing.T) {
	engine := chtest.Start(t, chtest.Options{Env: []string{"TZ=Asia/Tokyo"}})
	if zone := engine.SQL(t, "SELECT timezone()"); zone != "Asia/Tokyo" {
		t.Fatalf("the server is in %s", zone)
	}
	o := chstate.Options{
		Host: engine.Host, Port: engine.Port, User: engine.User, Secure: engine.Secure, Schema: chtest.SchemaOn(t, engine.Server),
		ServerSettings: map[string]string{"session_timezone": "America/New_York"},
	}
	o.Lock.Wait = 1500 * time.Millisecond
	h, err := open(t, o).Lock(t.Context(), "a")
	must(t, err)
	o.ServerSettings = nil
	_, err = open(t, o).Lock(t.Context(), "a") // not stale
	var locked *chstate.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("got %v", err)
	}
	for what, age := range map[string]time.Duration{
		"since it was last heard of": locked.Now.Sub(locked.Seen),
		"since it holds":             time.Since(locked.Since) - 2*time.Second,
		"until it is free, short of": locked.Now.Add(10 * time.Second).Sub(locked.FreeAt),
	} {
		if age < -2*time.Second || age > 4*time.Second {
			t.Errorf("%s: %s", what, age)
		}
	}
	must(t, h.Set(t.Context(), aState(1)))
	st := wantState(t, open(t, o), "a", `{}`, `{"v":1}`)
	if time.Since(st.UpdatedAt).Abs() > 10*time.Second {
		t.Errorf("updated at %s", st.UpdatedAt)
	}
	h.Release()
}

// R01, R02: on a table that drops repeated inserts, clearing and setting the
// same again, and going back to an earlier value, both show.
func TestR01R02BackToAnEarlierValue(t *testing.T) {
	o := options(t)
	s := open(t, o)
	must(t, s.Migrate(t.Context()))
	chtest.SQL(t, fmt.Sprintf("ALTER TABLE `%s`.state MODIFY SETTING non_replicated_deduplication_window = 100", o.Schema))
	for _, write := range []func(context.Context, chstate.State) error{s.Set, s.Update} {
		for _, v := range []int{1, 2, 1} {
			must(t, write(t.Context(), aState(v)))
			wantState(t, s, "a", `{}`, fmt.Sprintf(`{"v":%d}`, v))
		}
		must(t, s.Delete(t.Context(), "a"))
		must(t, write(t.Context(), aState(1)))
		wantState(t, s, "a", `{}`, `{"v":1}`)
		must(t, s.Delete(t.Context(), "a"))
	}
}

// R11: a profile in which inserts are gathered and not waited for.
func TestR11AsyncInsertProfile(t *testing.T) {
	o, p := proxied(t)
	p.On(faultproxy.Profile(map[string]string{"async_insert": "1", "wait_for_async_insert": "0", "async_insert_busy_timeout_ms": "5000"}))
	o.Lock.Wait = 300 * time.Millisecond
	s, other := open(t, o), open(t, o)
	for i := range 3 {
		must(t, s.Set(t.Context(), aState(i)))
		wantState(t, other, "a", `{}`, fmt.Sprintf(`{"v":%d}`, i))
	}
	h, err := s.Lock(t.Context(), "a")
	must(t, err)
	if _, err := other.Lock(t.Context(), "a"); !errors.Is(err, chstate.ErrLocked) {
		t.Errorf("two holders: %v", err)
	}
	must(t, h.Set(t.Context(), aState(9)))
	h.Release()
	must(t, s.Close())
	wantState(t, other, "a", `{}`, `{"v":9}`)
	must(t, other.Update(t.Context(), aState(10)))
}

// R12: a backup brings a lock back whose holder is long gone, and a state that
// was cleared. The lock is nobody's after a lease, at once when it is older than that.
func TestR12RestoredBackup(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Lock.Lease, o.Lock.Linger = 2*time.Second, -1
	s := open(t, o)
	h, err := s.Lock(t.Context(), "a")
	must(t, err)
	must(t, h.Set(t.Context(), aState(1)))
	for _, table := range []string{"state", "state_lock"} {
		chtest.SQL(t, fmt.Sprintf("CREATE TABLE `%s`.backup_%s ENGINE = MergeTree ORDER BY state_id AS SELECT * FROM `%s`.%s", o.Schema, table, o.Schema, table))
	}
	h.Release()
	must(t, s.Delete(t.Context(), "a"))
	must(t, s.Close())
	time.Sleep(o.Lock.Lease + 500*time.Millisecond) // the backup is older than a lease
	for _, table := range []string{"state", "state_lock"} {
		chtest.SQL(t, fmt.Sprintf("TRUNCATE TABLE `%s`.%s", o.Schema, table))
		chtest.SQL(t, fmt.Sprintf("INSERT INTO `%s`.%s SELECT * FROM `%s`.backup_%s", o.Schema, table, o.Schema, table))
	}
	again := open(t, o)
	wantState(t, again, "a", `{}`, `{"v":1}`) // a backup's state is what it was; docs/cases.md
	start := time.Now()
	must(t, again.Update(t.Context(), aState(2)))
	if took := time.Since(start); took > o.Lock.Lease+8*time.Second {
		t.Errorf("the restored lock was in the way for %s", took)
	}
	wantState(t, again, "a", `{}`, `{"v":2}`)
}

// R13: a thousand versions of a megabyte lie unmerged: one state is still read
// quickly, and so is its list. (ClickHouse merges by itself; what to do where
// it does not is in docs/cases.md.)
func TestR13ManyLargeVersions(t *testing.T) {
	t.Parallel()
	o := options(t)
	s := open(t, o)
	must(t, s.Migrate(t.Context()))
	chtest.SQL(t, fmt.Sprintf("SYSTEM STOP MERGES `%s`.state", o.Schema))
	for part := range 20 {
		chtest.SQL(t, fmt.Sprintf("INSERT INTO `%s`.state SELECT 'a', NULL, concat('{\"v\":%d,\"n\":', toString(number), ',\"x\":\"', repeat('x', 1000000), '\"}'), fromUnixTimestamp64Milli(toInt64(%d + number))"+
			" FROM numbers(50) SETTINGS optimize_on_insert = 0, max_block_size = 10, min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0", o.Schema, part, part*100))
	}
	if n := chtest.SQL(t, fmt.Sprintf("SELECT count() FROM `%s`.state", o.Schema)); n != "1000" {
		t.Fatalf("%s versions", n)
	}
	start := time.Now()
	st, err := s.Get(t.Context(), "a")
	must(t, err)
	get := time.Since(start)
	if !strings.HasPrefix(string(st.Completed), `{"v":19,"n":49,`) {
		t.Errorf("got %.30s", st.Completed)
	}
	start = time.Now()
	if got := ids(t, s, ""); len(got) != 1 {
		t.Errorf("listed %v", got)
	}
	list := time.Since(start)
	start = time.Now()
	must(t, s.Update(t.Context(), aState(1)))
	t.Logf("1,000 unmerged versions of 1 MB: get %s, list %s, update %s", get, list, time.Since(start))
	if most := 30 * time.Second; get > most || list > most { // seconds on a busy machine; what may not be is minutes
		t.Errorf("get took %s, list %s", get, list)
	}
}
