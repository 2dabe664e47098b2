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
	a.fromTo(cmd, (*chstate.Store).Copy, "This will overwrite state for the destination. Continue?",
		"State for %[2]s was copied from %[1]s.\n")
	return cmd
}

// fromTo lets a command write the state of one id over that of another, once
// that is consented to; done then names the two, in this order.
func (a *app) fromTo(cmd *cobra.Command, write func(s *chstate.Store, ctx context.Context, from, to string) error, question, done string) {
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		from, to := args[0], args[1]
		if err := a.consent(ctx, *force, question); err != nil {
			return err
		}
		return a.withStore(ctx, cmd.Name()+" "+from+" "+to, func(s *chstate.Store) error {
			if err := write(s, ctx, from, to); err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, done, from, to)
			return nil
		})
	})
}
