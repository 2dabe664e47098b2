package cli

import "syscall"

// endWithParent lets the kernel end a command when we are killed: it would go
// on without the lock.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
