package lock

import (
	"time"

	"golang.org/x/sys/windows"
)

// systemClock reads GetTickCount64, which counts sleep and hibernation, in
// steps of 10 to 16 ms.
type systemClock struct{}

func (systemClock) Now() time.Duration { return windows.DurationSinceBoot() }

// SystemClock is the clock that a Locker uses unless told otherwise.
func SystemClock() Clock { return systemClock{} }
