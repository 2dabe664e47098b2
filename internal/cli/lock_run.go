package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) lockRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run STATE_ID -- COMMAND [ARG …]",
		Short: "Run a command while no other run of the state goes on",
		Long: `Take the lock of a whole run of a state, run a command, and give the lock back when it has
ended. Other runs under "chstate lock run" wait; the state itself is not locked, so that
the command may change it. Signals are passed on to the command and all that it started.

The exit code is the command's (128 + n when signal n ended it); 75 when the lock was
not obtained, and nothing was run; 76 when the lock was lost: then the command and all
that it started were ended, by SIGTERM and, a fifth of the lease later, by SIGKILL.
126 and 127 as a shell gives them, for a command that cannot be run.`,
		Example: `  chstate lock run prod:tap-a-to-target-b -- meltano run tap-a target-b
  chstate lock run --wait 0 prod:tap-a-to-target-b -- meltano run tap-a target-b`,
		Args: func(cmd *cobra.Command, args []string) error {
			return takes(2, "a state id", "a command, behind --")(cmd, args[:min(len(args), 2)])
		},
	}
	wait := waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, words := args[0], args[1:]
		if dash := cmd.ArgsLenAtDash(); dash != 0 && dash != 1 {
			return usageError{"put -- between the state id and the command"}
		}
		if words[0] == "--" && len(words) > 1 { // both were needed: lock run -- -id -- command
			words = words[1:]
		}
		return a.lockRun(cmd.Context(), id, words, wait)
	}
	return cmd
}

func (a *app) lockRun(ctx context.Context, id string, words []string, wait *waitTime) error {
	path, err := exec.LookPath(words[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		code := exitNoCommand
		if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EISDIR) {
			code = exitNoExec
		}
		return ended{code, fmt.Errorf("cannot run %q: %w", words[0], err)}
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)

	var lease time.Duration
	own := func(o *chstate.Options) {
		wait.apply(o)
		o.Lock.Linger = -1 // nobody uses it again
		lease = o.Lock.Lease
	}
	what := fmt.Sprintf("lock run %s -- %s", id, shownCommand(words))
	err = a.withStoreAs(ctx, what, own, func(s *chstate.Store) error {
		held, release, err := acquireUnless(ctx, s, id, signals)
		if err != nil {
			return err
		}
		defer release()
		child := exec.Command(path, words[1:]...)
		child.Args[0] = words[0]
		child.Env, child.Stdin, child.Stdout, child.Stderr = a.env, a.stdin, a.stdout, a.errors
		return a.guard(held, child, signals, max(lease/5, time.Second))
	})
	return err
}

// The codes that shells give for a command that cannot be run.
const (
	exitNoExec    = 126
	exitNoCommand = 127
)

// errNothingRun: a signal came before the lock.
var errNothingRun = interrupted{errors.New("the lock was not obtained, and nothing was run")}

// acquireUnless takes the lock, unless a signal comes first.
func acquireUnless(ctx context.Context, s *chstate.Store, id string, signals <-chan os.Signal) (context.Context, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-signals:
			cancel()
		case <-waiting:
		}
	}()
	held, release, err := acquire(ctx, s, id, true)
	close(waiting)
	<-watched
	switch {
	case ctx.Err() != nil:
		if err == nil { // both at once
			release()
		}
		return nil, nil, errNothingRun
	case err != nil:
		return nil, nil, notObtained(ctx, err)
	}
	return held, release, nil
}

// guard runs the command until it ends, passes signals on to it, and ends it
// when the lock is lost: from grace later on, others may hold it.
func (a *app) guard(held context.Context, child *exec.Cmd, signals <-chan os.Signal, grace time.Duration) error {
	g, err := startGroup(child)
	if err != nil {
		return ended{exitNoExec, fmt.Errorf("cannot run %q: %w", child.Args[0], err)}
	}
	defer g.close()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = child.Wait() // ProcessState tells
	}()
	lost := held.Done()
	var kill <-chan time.Time
	for {
		select {
		case <-exited:
			if held.Err() != nil { // select may see both at once
				return ended{exitLost, fmt.Errorf("the lock was lost and the command was ended: %w", context.Cause(held))}
			}
			if code := exitStatus(child.ProcessState); code != exitDone {
				return ended{code, nil}
			}
			return nil
		case s := <-signals:
			g.signal(s)
		case <-lost:
			lost = nil
			fmt.Fprintf(a.errors, "chstate: %s — the command is being ended\n", oneLine(context.Cause(held).Error()))
			g.terminate()
			timer := time.NewTimer(grace)
			defer timer.Stop()
			kill = timer.C
		case <-kill:
			g.kill()
		}
	}
}
