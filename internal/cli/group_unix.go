//go:build unix

package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that go on to a command under a lock.
var passedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// group is a command and all that it starts: a process group of its own, which
// can be ended without ending whoever started us.
type group struct {
	pid      int
	terminal int // the terminal that we lent it, -1 for none
}

// startGroup starts a command as a group. Where we have the terminal, the group
// gets it, so that it can read from it and Ctrl-C goes to it; Ctrl-Z does not:
// a run that holds a lock cannot be put aside.
func startGroup(child *exec.Cmd) (*group, error) {
	g := &group{terminal: -1}
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if f, ok := child.Stdin.(*os.File); ok && hasTerminal(int(f.Fd())) {
		g.terminal = int(f.Fd())
		child.SysProcAttr.Foreground, child.SysProcAttr.Ctty = true, g.terminal
		signal.Ignore(syscall.SIGTSTP)
	}
	// The kernel ends the command when the thread that started it ends, so
	// that thread must be ours until the command has ended.
	runtime.LockOSThread()
	endWithParent(child.SysProcAttr)
	if err := child.Start(); err != nil {
		g.close()
		return nil, err
	}
	g.pid = child.Process.Pid
	return g, nil
}

// hasTerminal says whether our own group is the one that the terminal listens to.
func hasTerminal(fd int) bool {
	front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && front == unix.Getpgrp()
}

func (g *group) signal(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_ = unix.Kill(-g.pid, number) // one that has ended needs none
	}
}

func (g *group) terminate() { g.signal(syscall.SIGTERM) }
func (g *group) kill()      { g.signal(syscall.SIGKILL) }

// close takes the terminal back.
func (g *group) close() {
	runtime.UnlockOSThread()
	if g.terminal < 0 {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // we are in its background until this is done
	_ = unix.IoctlSetPointerInt(g.terminal, unix.TIOCSPGRP, unix.Getpgrp())
	signal.Reset(syscall.SIGTTOU, syscall.SIGTSTP)
}

// exitStatus gives the code as shells do.
func exitStatus(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}
