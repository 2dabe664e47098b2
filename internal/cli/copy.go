package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) copyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy SRC_STATE_ID DST_STATE_ID",
		Short: "Copy a state to another id",
		Long: `Write what the next run of SRC would start from over DST, as a complete state and under
DST's lock. Where SRC has no state, nothing is changed.`,
		Args: takes(2, "a state id to copy from", "a state id to copy to"),
	}
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		from, to := args[0], args[1]
		if !*force {
			if err := a.confirm(ctx, "This will overwrite state for the destination. Continue?"); err != nil {
				return err
			}
		}
		return a.withStore(ctx, "copy "+from+" "+to, func(s *chstate.Store) error {
			if err := s.Copy(ctx, from, to); err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, "State for %s was copied from %s.\n", to, from)
			return nil
		})
	})
	return cmd
}
