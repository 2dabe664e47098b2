package lock

import "errors"

// ErrLost says that a hold ended (its deadline passed, or somebody broke it)
// before the work done under it was known to be safe.
var ErrLost = errors.New("lock lost")
