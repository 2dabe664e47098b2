//go:build unix

package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/lock"
	"github.com/chstate/chstate/lock/locktest"
)

// keeperConfig is a configuration for an engine that has a Keeper.
func keeperConfig(t *testing.T) (*chtest.Keeper, Config) {
	t.Helper()
	keeper := chtest.StartKeeper(t)
	engine := chtest.Start(t, chtest.Options{ConfigFile: keeper.EngineConfig(t)})
	cfg := testConfig(engine.Server, "keeper_test")
	cfg.LockStrategy = strategyKeeper
	return keeper, cfg
}

// TestKeeper: the log in Keeper passes the suite that every log of the lock
// has to, and what only Keeper can do to it.
func TestKeeper(t *testing.T) {
	t.Parallel()
	keeper, cfg := keeperConfig(t)
	db := openWith(t, cfg)
	t.Run("conformance", func(t *testing.T) {
		locktest.Run(t, func(*testing.T) lock.Log { return db.LockLog() })
	})
	t.Run("a lost race is tried again", func(t *testing.T) { testCellRace(t, cfg) })
	t.Run("cells stay small", func(t *testing.T) { testCellsStaySmall(t, db) })
	t.Run("claims of all", func(t *testing.T) {
		check(t, db.LockLog().Append(t.Context(), "shown", lock.Record{ClaimID: "!a", Seq: 2, Lease: time.Minute, Ceiling: lock.ServerFills}))
		all, err := db.Claims(t.Context())
		check(t, err)
		for _, l := range all {
			if l.ID == "shown" && len(l.Rows) == 1 && l.Rows[0].ClaimID == "!a" && l.Now > 0 {
				return
			}
		}
		t.Errorf("no claim on %q in %v", "shown", all)
	})
	t.Run("Keeper gone for a while", func(t *testing.T) { testKeeperGone(t, keeper, db) })
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testCellRace lets several processes append to one key at once: every row
// that was acknowledged is there.
func testCellRace(t *testing.T, cfg Config) {
	const writers, each = 4, 8
	var all sync.WaitGroup
	for w := range writers {
		db := openWith(t, cfg)
		all.Go(func() {
			for n := range each {
				rec := lock.Record{ClaimID: fmt.Sprintf("!%d-%d", w, n), Seq: 2, Lease: time.Minute, Ceiling: lock.ServerFills}
				if err := db.LockLog().Append(t.Context(), "raced", rec); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	snap, err := openWith(t, cfg).LockLog().Read(t.Context(), "raced")
	check(t, err)
	if len(snap.Rows) != writers*each {
		t.Errorf("%d rows, want %d", len(snap.Rows), writers*each)
	}
}

// testCellsStaySmall: many holds leave few rows, and the greatest of their ceilings.
func testCellsStaySmall(t *testing.T, db *DB) {
	log := db.LockLog()
	for n := range 2 * keepTombstones {
		id := fmt.Sprintf("!%03d", n)
		check(t, log.Append(t.Context(), "busy", lock.Record{ClaimID: id, Seq: 2, Lease: time.Second, Ceiling: lock.ServerFills}))
		check(t, log.Append(t.Context(), "busy", lock.Record{ClaimID: id, Seq: 3, Released: true, Ceiling: lock.Millis(1000 - n)}))
	}
	snap, err := log.Read(t.Context(), "busy")
	check(t, err)
	if len(snap.Rows) != keepTombstones+1 || !snap.Rows[0].Released || snap.Rows[0].Ceiling != 1000 {
		t.Errorf("left are %+v", snap.Rows)
	}
}

// testKeeperGone takes Keeper away during a hold: nothing is taken for done
// that is not, and what waited goes on when it is back.
func testKeeperGone(t *testing.T, keeper *chtest.Keeper, db *DB) {
	locker := lock.New(db.LockLog(), lock.Options{
		Lease: 3 * time.Second, Retry: time.Second, Wait: 40 * time.Second, Skew: db.Skew,
	})
	hold, err := locker.Acquire(t.Context(), "gone")
	check(t, err)
	keeper.Stop(t)
	select {
	case <-hold.Context().Done():
	case <-time.After(15 * time.Second):
		t.Fatal("the hold outlived its lease without Keeper")
	}
	if err := context.Cause(hold.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("the hold ended with %v", err)
	}
	keeper.Start(t)
	hold.Release()
	again, err := locker.Acquire(t.Context(), "gone")
	check(t, err)
	again.Release()
	check(t, locker.Close(t.Context()))
}

// TestKeeperWithoutKeeper: asked for by name, its absence is an error that says what to do.
func TestKeeperWithoutKeeper(t *testing.T) {
	cfg := testConfig(chtest.Target(t), chtest.Schema(t))
	cfg.LockStrategy = strategyKeeper
	err := openWith(t, cfg).Prepare(t.Context())
	if err == nil || !strings.Contains(err.Error(), "lock_strategy=table") {
		t.Errorf("got %v", err)
	}
	cfg.LockStrategy = strategyAuto // an ordinary server: an ordinary table
	check(t, openWith(t, cfg).Prepare(t.Context()))
}

// TestCell is the cell alone: what stands, what goes, and that ceilings never fall.
func TestCell(t *testing.T) {
	claim := lock.Record{ClaimID: "!a", Seq: 2, Lease: 10 * time.Second, Ceiling: lock.ServerFills}
	var c cell
	c = c.with(claim, 1000)
	if !c.has(claim) || c.Rows[0].Ceiling != 11_000 || c.Rows[0].Expires != 11_000 {
		t.Fatalf("announced: %+v", c)
	}
	mark := lock.Claim{ID: "!a", Ceiling: 11_000}.Tombstone()
	if c.has(mark) {
		t.Error("a mark is there before it was set")
	}
	c = c.with(mark, 2000)
	if !c.has(mark) || len(c.Rows) != 2 {
		t.Fatalf("marked: %+v", c)
	}
	tomb := lock.Record{ClaimID: "!a", Seq: 3, Released: true, Ceiling: 1500}
	if c.has(tomb) {
		t.Error("a tombstone is there before it was written")
	}
	c = c.with(tomb, 2500)
	if !c.has(tomb) || !c.has(claim) || len(c.Rows) != 2 || c.Floor != 0 {
		t.Fatalf("released: %+v", c)
	}
	text, err := c.text()
	check(t, err)
	c, err = parseCell(text)
	check(t, err)
	c = c.with(lock.Record{ClaimID: "!b", Seq: 2, Waiting: true}, 400_000)
	if len(c.Rows) != 1 || c.Rows[0].Claim != "!b" || c.Floor != 11_000 {
		t.Fatalf("after their time: %+v", c)
	}
	if _, err := parseCell("not JSON"); err == nil {
		t.Error("nonsense was read")
	}
}
