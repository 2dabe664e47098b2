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

func errSlow(waited, lease time.Duration, last error) error {
	err := fmt.Errorf("%w: in %s no claim was confirmed within a lease of %s; raise lock_timeout_seconds",
		ErrSlow, waited.Round(time.Millisecond), lease)
	if last != nil {
		return fmt.Errorf("%w (%w)", err, last)
	}
	return err
}

func errLost(key, why string) error {
	return fmt.Errorf("%w: %q %s", ErrLost, key, why)
}

// errBroken says who ended a claim.
func errBroken(key string, c Claim) error {
	by := "somebody else"
	if h := c.parsed().BrokenBy; h.Host != "" {
		by = fmt.Sprintf("pid %d on %s", h.PID, h.Host)
	}
	return errLost(key, "was taken over or broken by "+by)
}
