//go:build cluster

package clickhouse

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/lock"
	"github.com/chstate/chstate/lock/locktest"
)

// These tests need two replicas (examples/cluster): CH_TEST_URI is the one,
// CH_TEST_URI_2 the other, CH_TEST_CLUSTER the cluster's name. They have a
// build tag of their own, since there is no such thing on one machine.

func replicas(t *testing.T, strategy string) [2]*DB {
	t.Helper()
	cluster, second := os.Getenv("CH_TEST_CLUSTER"), os.Getenv("CH_TEST_URI_2")
	if cluster == "" || second == "" {
		t.Fatal("set CH_TEST_URI, CH_TEST_URI_2 and CH_TEST_CLUSTER: see examples/cluster")
	}
	u, err := url.Parse(second)
	check(t, err)
	cfg := testConfig(chtest.Target(t), chtest.Schema(t))
	cfg.Cluster, cfg.LockStrategy, cfg.RetryFor = cluster, strategy, 30*time.Second
	one := openWith(t, cfg)
	check(t, one.Prepare(t.Context()))
	cfg.Host = u.Hostname()
	cfg.Port, err = strconv.Atoi(u.Port())
	check(t, err)
	return [2]*DB{one, openWith(t, cfg)}
}

// balanced is a log whose requests go to one replica after the other, as
// through a balancer.
type balanced struct {
	dbs [2]*DB
	n   atomic.Uint64
}

func (b *balanced) log() lock.Log { return b.dbs[b.n.Add(1)%2].LockLog() }

func (b *balanced) Append(ctx context.Context, key string, rec lock.Record) error {
	return b.log().Append(ctx, key, rec)
}

func (b *balanced) Read(ctx context.Context, key string) (lock.Snapshot, error) {
	return b.log().Read(ctx, key)
}

func TestCluster(t *testing.T) {
	for _, strategy := range []string{"table", strategyKeeper} {
		t.Run(strategy, func(t *testing.T) {
			dbs := replicas(t, strategy)
			t.Run("conformance", func(t *testing.T) {
				locktest.Run(t, func(*testing.T) lock.Log { return &balanced{dbs: dbs} })
			})
			t.Run("read-add-write", func(t *testing.T) { testClusterAdds(t, dbs) })
		})
	}
}

// testClusterAdds lets writers on both replicas add to one state.
func testClusterAdds(t *testing.T, dbs [2]*DB) {
	const writers, each = 4, 25
	var all sync.WaitGroup
	for w := range writers {
		db := dbs[w%2]
		locker := lock.New(db.LockLog(), lock.Options{
			Lease: 10 * time.Second, Retry: time.Second, Wait: 2 * time.Minute, Skew: db.Skew,
		})
		all.Go(func() {
			for range each {
				if err := addOne(t.Context(), locker, db); err != nil {
					t.Error(err)
					return
				}
			}
			if err := locker.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	row, _, err := dbs[0].Get(t.Context(), "sum")
	check(t, err)
	if want := fmt.Sprintf(`{"n":%d}`, writers*each); string(row.Completed) != want {
		t.Errorf("the sum is %s, want %s", row.Completed, want)
	}
}

func addOne(ctx context.Context, locker *lock.Locker, db *DB) error {
	hold, err := locker.Acquire(ctx, "sum")
	if err != nil {
		return err
	}
	defer hold.Release()
	row, _, err := db.Get(ctx, "sum")
	if err != nil {
		return err
	}
	n := 0
	if len(row.Completed) > 0 {
		if _, err := fmt.Sscanf(string(row.Completed), `{"n":%d}`, &n); err != nil {
			return err
		}
	}
	return hold.Write(ctx, row.UpdatedAt, func(ctx context.Context, v lock.Millis) error {
		return db.Insert(ctx, Row{ID: "sum", Completed: fmt.Appendf(nil, `{"n":%d}`, n+1), UpdatedAt: v})
	})
}
