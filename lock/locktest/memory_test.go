package locktest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/chstate/chstate/lock"
	"github.com/chstate/chstate/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	locktest.Run(t, func(*testing.T) lock.Log { return locktest.NewMemory(nil) })
}
