package lock

import "time"

// Clock is "my clock" of the protocol. It must run steadily, whatever is done
// to the wall clock, and must count the time in which the machine was
// suspended: Go's own monotonic clock stands still then on most systems, and a
// laptop that slept through its lease would take itself for the holder. Only
// differences of readings mean anything.
type Clock interface {
	Now() time.Duration
}

// GoClock is Go's monotonic clock. It follows testing/synctest; it does not
// count suspended time everywhere.
type GoClock struct{}

var started = time.Now()

// Now gives the time since the program started.
func (GoClock) Now() time.Duration { return time.Since(started) }
