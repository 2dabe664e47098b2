//go:build unix && !linux

package cli

import "syscall"

// endWithParent does nothing: these systems have no such thing.
func endWithParent(*syscall.SysProcAttr) {}
