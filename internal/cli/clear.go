package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) clearCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clear STATE_ID | --all",
		Short: "Remove one state, or all of them",
		Long: `Remove a state, under its lock; the next run then starts from the beginning.
That there is no such state is no error. --all removes the states that are there
at that moment, without locks.`,
		Args: takes(0, "a state id"),
	}
	all := cmd.Flags().Bool("all", false, "remove every state")
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		if (len(args) == 1) == *all {
			return usageError{"give either a state id or --all, and not both"}
		}
		const question = "This will clear state for the job(s). Continue?"
		if *all {
			if err := a.consent(ctx, *force, question); err != nil {
				return err
			}
			progress := a.newBar("clearing")
			return a.withStoreAs(ctx, "clear --all", progress.apply, func(s *chstate.Store) error {
				n, err := s.ClearAll(ctx)
				progress.clear()
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stderr, "%d state(s) were cleared.\n", n)
				return nil
			})
		}
		if err := a.answerable(*force, question); err != nil {
			return err
		}
		return a.withStore(ctx, "clear "+args[0], func(s *chstate.Store) error {
			_, err := s.Get(ctx, args[0])
			there := !errors.Is(err, chstate.ErrNoState)
			if err != nil && there && !errors.Is(err, chstate.ErrCorrupt) {
				return err
			}
			if there {
				if err := a.consent(ctx, *force, question); err != nil {
					return err
				}
			}
			if there || *force { // what a replica does not show yet is removed, too, where nobody is to be asked
				if err := s.Delete(ctx, args[0]); err != nil {
					return err
				}
			}
			if !there {
				fmt.Fprintf(a.stderr, "There was no state for %s.\n", args[0])
				return nil
			}
			fmt.Fprintf(a.stderr, "State for %s was cleared.\n", args[0])
			return nil
		})
	})
	return cmd
}
