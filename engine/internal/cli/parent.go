package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// parentPoll is how often the parent is looked for.
const parentPoll = time.Second

// watchParent calls gone when the process pid is not there any more. Where pid
// started this process, a new parent tells that too, also when the number has
// been given to another process since.
func watchParent(ctx context.Context, pid int, gone func()) {
	direct := os.Getppid() == pid
	tick := time.NewTicker(parentPoll)
	defer tick.Stop()
	for {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || direct && os.Getppid() != pid {
			gone()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
