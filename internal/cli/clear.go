package cli

import (
	"context"
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
		if err := a.consent(ctx, *force, "This will clear state for the job(s). Continue?"); err != nil {
			return err
		}
		if *all {
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
		return a.withStore(ctx, "clear "+args[0], func(s *chstate.Store) error {
			if err := s.Delete(ctx, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, "State for %s was cleared.\n", args[0])
			return nil
		})
	})
	return cmd
}
