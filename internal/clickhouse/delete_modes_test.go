package clickhouse

import (
	"fmt"
	"sync"
	"testing"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/lock"
)

// TestDeletesBesideOthers: deleted rows stay deleted while others delete from
// the same tables, in their server's usual way. (With
// lightweight_delete_mode='lightweight_update' about one in ten came back, and was
// waited for in vain.)
func TestDeletesBesideOthers(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	const workers, rounds = 2, 8
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range rounds {
				id := fmt.Sprintf("ours-%d-%d", w, i)
				if err := db.Insert(ctx, Row{ID: id, Completed: []byte("{}"), UpdatedAt: 5}); err != nil {
					t.Error(err)
				}
				if err := db.LockLog().Append(ctx, id, lockRec(w)); err != nil {
					t.Error(err)
				}
				if err := db.Delete(ctx, id, 6); err != nil {
					t.Error(err)
				}
				if err := db.LockLog().(lock.Forgetter).Forget(ctx, id, lockRec(w).ClaimID); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for i := range rounds {
				for _, table := range []string{db.names.State(), db.names.Lock()} {
					extra := ""
					if table == db.names.Lock() {
						extra = ", lock_id"
					}
					id := fmt.Sprintf("'theirs-%d-%d'", w, i)
					value := id
					if extra != "" {
						value += ", " + id
					}
					sqlOn(t, db, "INSERT INTO "+table+" (state_id"+extra+") VALUES ("+value+")")
					sqlOn(t, db, "DELETE FROM "+table+" WHERE state_id = "+id)
				}
			}
		})
	}
	all.Wait()
	for _, table := range []string{db.names.State(), db.names.Lock()} {
		if left := chtest.SQL(t, "SELECT groupArray(state_id) FROM "+table); left != "[]" {
			t.Errorf("rows of %s came back: %s", table, left)
		}
	}
}
