package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) rollbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback STATE_ID --to VERSION|TIME",
		Short: "Bring an earlier version of a state back",
		Long: `Write the version of a state that was current at a moment as a new version, under the
lock. What it replaces stays in the history, so that a rollback can be rolled back.
A state that was cleared comes back, too.`,
		Example: `  chstate history prod:tap-a-to-target-b
  chstate rollback prod:tap-a-to-target-b --to 2026-08-01T12:30:00.123Z
  chstate rollback prod:tap-a-to-target-b --to 2h --dry-run`,
		Args: takes(1, "a state id"),
	}
	to := cmd.Flags().String("to", "", momentHelp)
	dryRun := cmd.Flags().Bool("dry-run", false, "write nothing: show what would change")
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		id := args[0]
		if *to == "" {
			return usageError{"say which version: --to VERSION, or a time"}
		}
		moment, err := parseMoment(*to, time.Now())
		if err != nil {
			return err
		}
		question := "This will replace the state's current value by that of %s. Continue?"
		if err := a.answerable(*force || *dryRun, fmt.Sprintf(question, versionText(moment))); err != nil {
			return err
		}
		return a.withStore(ctx, "rollback "+id+" --to "+*to, func(s *chstate.Store) error {
			target, err := s.VersionAt(ctx, id, moment)
			if err != nil {
				return err
			}
			if err := notToCome(target, moment, time.Now()); err != nil {
				return err
			}
			if *dryRun {
				return a.showRollback(ctx, s, target)
			}
			if !target.Current {
				if err := a.consent(ctx, *force, fmt.Sprintf(question, versionText(target.UpdatedAt))); err != nil {
					return err
				}
				if target, err = s.Rollback(ctx, id, target.UpdatedAt); err != nil {
					return err
				}
			}
			if target.Current {
				fmt.Fprintf(a.stderr, "The version of %s is current already; nothing was changed.\n", versionText(target.UpdatedAt))
				return nil
			}
			fmt.Fprintf(a.stderr, "State for %s is that of %s again.\n", id, versionText(target.UpdatedAt))
			return nil
		})
	})
	return cmd
}

// notToCome refuses a moment after now, which is a slip of the pen: the version
// that was current then is the one of now. A version that a wrong clock dated
// so is taken.
func notToCome(target chstate.Version, moment, now time.Time) error {
	if !moment.After(now) || target.UpdatedAt.UnixMilli() == moment.UnixMilli() {
		return nil
	}
	return usageError{fmt.Sprintf("--to %s is still to come (it is %s): give a version as \"chstate history\" prints it, or a moment that has passed — nothing was changed",
		versionText(moment), versionText(now))}
}

func (a *app) showRollback(ctx context.Context, s *chstate.Store, target chstate.Version) error {
	id := target.ID
	now, err := s.Get(ctx, id)
	if err != nil && !errors.Is(err, chstate.ErrNoState) && !errors.Is(err, chstate.ErrCorrupt) {
		return err
	}
	fmt.Fprintf(a.stderr, "Nothing was written. The version of %s would be written:\n", versionText(target.UpdatedAt))
	changes, err := chstate.Diff(now, target.State)
	if errors.Is(err, chstate.ErrCorrupt) && target.Check() == nil {
		// What is there is not usable, which is why it is to go. Shown is what comes.
		fmt.Fprintf(a.stderr, "What is there now cannot be compared: %v\n", err)
		now = chstate.State{ID: id}
		changes, err = chstate.Diff(now, target.State)
	}
	if err != nil {
		return err
	}
	return a.printDiff(chstate.Version{State: now, Current: true}, target, changes)
}
