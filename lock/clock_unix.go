//go:build linux || darwin

package lock

import (
	"time"

	"golang.org/x/sys/unix"
)

// systemClock reads the system's clock that counts suspended time.
type systemClock struct{}

func (systemClock) Now() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(sleeplessClock, &ts) != nil { // a kernel or sandbox without it
		return GoClock{}.Now()
	}
	return time.Duration(ts.Nano())
}

// SystemClock is the clock that a Locker uses unless told otherwise.
func SystemClock() Clock { return systemClock{} }
