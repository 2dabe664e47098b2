package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) moveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move SRC_STATE_ID DST_STATE_ID",
		Short: "Move a state to another id",
		Long: `Copy a state to another id, then clear the first one, under the locks of both. At no
moment do both lack it. Where SRC has no state, nothing is changed.`,
		Args: takes(2, "a state id to move from", "a state id to move to"),
	}
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		from, to := args[0], args[1]
		if !*force {
			if err := a.confirm(ctx, "This will clear the source state and overwrite destination state. Continue?"); err != nil {
				return err
			}
		}
		return a.withStore(ctx, "move "+from+" "+to, func(s *chstate.Store) error {
			if err := s.Move(ctx, from, to); err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, "State for %s was moved to %s.\n", from, to)
			return nil
		})
	})
	return cmd
}
