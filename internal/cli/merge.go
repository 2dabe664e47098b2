package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) mergeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "merge STATE_ID [STATE]",
		Short: "Add bookmarks to a state",
		Long: `Merge bookmarks onto those that are there, key by key and under the lock, as an
unfinished run does: all that is not named stays. They come from STATE, from a file
(- for standard input), or from another state id.`,
		Example: `  chstate merge dev:tap-a-to-target-b '{"singer_state":{"bookmarks":{"users":{"replication_key_value":7}}}}'
  chstate merge dev:tap-a-to-target-b --from-state-id prod:tap-a-to-target-b`,
		Args: takes(1, "a state id", "a state"),
	}
	file := cmd.Flags().String("input-file", "", "file with the state, - for standard input")
	from := cmd.Flags().String("from-state-id", "", "state id whose state is merged onto the other")
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		id, rest := args[0], args[1:]
		what := "merge " + id
		if cmd.Flags().Changed("from-state-id") {
			if len(rest) > 0 || cmd.Flags().Changed("input-file") {
				return usageError{"give the state to merge in one way: STATE, --input-file or --from-state-id"}
			}
			if *from == "" {
				return usageError{"--from-state-id was given an empty state id"}
			}
			return a.withStore(ctx, what+" --from-state-id "+*from, func(s *chstate.Store) error {
				return a.merged(id, s.MergeFrom(ctx, *from, id))
			})
		}
		if len(rest) == 0 && !cmd.Flags().Changed("input-file") {
			return usageError{"give the state to merge: STATE, --input-file or --from-state-id"}
		}
		text, err := a.stateText(rest, *file, cmd.Flags().Changed("input-file"))
		if err != nil {
			return err
		}
		if _, err := checkState(text, true); err != nil {
			return err
		}
		return a.withStore(ctx, what, func(s *chstate.Store) error {
			return a.merged(id, s.Merge(ctx, chstate.State{ID: id, Partial: text}))
		})
	})
	return cmd
}

func (a *app) merged(id string, err error) error {
	if err == nil {
		fmt.Fprintf(a.stderr, "State for %s was merged.\n", id)
	}
	return err
}
