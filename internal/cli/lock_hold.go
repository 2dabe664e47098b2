package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) lockHoldCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hold STATE_ID",
		Short: "Hold a state's lock until Ctrl-C, for maintenance",
		Long: `Hold a state's lock until Ctrl-C or SIGTERM, so that no run, and no other command, changes
the state meanwhile. --run holds the lock of its whole run instead: runs under
"chstate lock run" wait, while the state can be edited. It ends with code 75 when the
lock was not obtained, and 76 when it was lost.`,
		Args: takes(1, "a state id"),
	}
	run := cmd.Flags().Bool("run", false, "hold the lock of the whole run")
	wait := waitFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		id := args[0]
		what := "lock hold " + id
		if *run {
			what = "lock hold --run " + id
		}
		return a.withStoreAs(ctx, what, wait.apply, func(s *chstate.Store) error {
			held, release, err := acquire(ctx, s, id, *run)
			if err != nil {
				return notObtained(ctx, err)
			}
			defer release()
			fmt.Fprintf(a.stderr, "The lock of %s is held until Ctrl-C.\n", id)
			select {
			case <-ctx.Done():
				fmt.Fprintf(a.stderr, "The lock of %s was given back.\n", id)
				return nil
			case <-held.Done():
				return ended{exitLost, fmt.Errorf("the lock of %s was lost: %w", id, context.Cause(held))}
			}
		})
	})
	return cmd
}

// acquire takes a state's lock, or that of its whole run. held ends when the lock is lost.
func acquire(ctx context.Context, s *chstate.Store, id string, run bool) (held context.Context, release func(), err error) {
	if run {
		h, err := s.LockRun(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		return h.Context(), h.Release, nil
	}
	h, err := s.Lock(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return h.Context(), h.Release, nil
}

// notObtained gives an error the code that tells a script that its command did
// not run, unless the id itself was refused.
func notObtained(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, chstate.ErrInvalid) {
		return err
	}
	return ended{exitNotObtained, err}
}

// waitTime is the flag --wait.
type waitTime struct {
	cmd *cobra.Command
	age
}

func waitFlag(cmd *cobra.Command) *waitTime {
	w := &waitTime{cmd: cmd}
	cmd.Flags().Var(w, "wait", "how long to wait for the lock (default: lock_wait_seconds)")
	return w
}

// apply puts the flag in the place of the setting.
func (w *waitTime) apply(o *chstate.Options) {
	if !w.cmd.Flags().Changed("wait") {
		return
	}
	if o.Lock.Wait = w.d; w.d == 0 {
		o.Lock.Wait = -1 // once, without waiting
	}
}
