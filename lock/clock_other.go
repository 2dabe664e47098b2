//go:build !linux && !darwin && !windows

package lock

// SystemClock is the clock that a Locker uses unless told otherwise.
func SystemClock() Clock { return GoClock{} }
