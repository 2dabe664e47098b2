package lock

import (
	"errors"
	"fmt"
	"time"
)

// ErrLost says that a hold ended (its deadline passed, or somebody broke it)
// before the work done under it was known to be safe.
var ErrLost = errors.New("lock lost")

// ErrSlow says that no claim of ours was confirmed within its lease, although
// nobody else was in the way.
var ErrSlow = errors.New("the server answers too slowly for the lease")

func errSlow(waited, lease time.Duration) error {
	return fmt.Errorf("%w: in %s no claim was confirmed within a lease of %s; raise lock_timeout_seconds",
		ErrSlow, waited.Round(time.Millisecond), lease)
}

func errLost(key, why string) error {
	return fmt.Errorf("%w: %q %s", ErrLost, key, why)
}
