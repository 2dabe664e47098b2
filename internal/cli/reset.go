package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) resetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset STATE_ID --stream STREAM",
		Short: "Forget the bookmark of one stream, keep the others",
		Long: `Forget the bookmarks of one or more streams (--stream again for each), under the lock:
the next run reads them from their beginning, and goes on with all others. Where one
of them has no bookmark, nothing is changed. "chstate rollback" brings them back.`,
		Example: `  chstate reset prod:tap-a-to-target-b --stream users`,
		Args:    takes(1, "a state id"),
	}
	streams := cmd.Flags().StringArray("stream", nil, "stream to forget the bookmark of")
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		id := args[0]
		if len(*streams) == 0 {
			return usageError{"name the stream to forget: --stream STREAM"}
		}
		what := strings.Join(*streams, ", ")
		question := fmt.Sprintf("This will forget the bookmarks of %s. Continue?", what)
		if err := a.answerable(*force, question); err != nil {
			return err
		}
		return a.withStore(ctx, "reset "+id+" --stream "+what, func(s *chstate.Store) error {
			if !*force {
				st, err := s.Get(ctx, id)
				if err != nil {
					return err
				}
				if _, err := st.Without(*streams...); err != nil {
					return err
				}
				if err := a.confirm(ctx, question); err != nil {
					return err
				}
			}
			if err := s.Reset(ctx, id, *streams...); err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, "State for %s has forgotten %s.\n", id, what)
			return nil
		})
	})
	return cmd
}
