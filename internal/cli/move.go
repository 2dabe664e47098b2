package cli

import (
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
	a.fromTo(cmd, (*chstate.Store).Move, "This will clear the source state and overwrite destination state. Continue?",
		"State for %[1]s was moved to %[2]s.\n")
	return cmd
}
