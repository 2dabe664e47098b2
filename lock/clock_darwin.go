package lock

import "golang.org/x/sys/unix"

// On Darwin CLOCK_MONOTONIC goes on while the machine sleeps (Go itself reads
// CLOCK_UPTIME_RAW, which does not).
const sleeplessClock = unix.CLOCK_MONOTONIC
