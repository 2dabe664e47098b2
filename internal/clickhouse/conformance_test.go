package clickhouse

import (
	"testing"

	"github.com/chstate/chstate/lock"
	"github.com/chstate/chstate/lock/locktest"
)

// TestTheLogIsOne: the table passes the suite that every log of the lock has to.
func TestTheLogIsOne(t *testing.T) {
	t.Parallel()
	db := open(t)
	locktest.Run(t, func(*testing.T) lock.Log { return db.LockLog() })
}
