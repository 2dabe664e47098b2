package lock

import "golang.org/x/sys/unix"

const sleeplessClock = unix.CLOCK_BOOTTIME
