package cli

import (
	"bufio"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the state ids, one on a line",
		Example: `  chstate list
  chstate list --pattern 'prod:*-to-target-clickhouse'`,
		Args: cobra.NoArgs,
	}
	pattern := cmd.Flags().String("pattern", "", "only ids that match this glob: * ? [abc] [!abc], all else literal")
	cmd.RunE = a.work(func(ctx context.Context, _ []string) error {
		return a.withStore(ctx, "list", func(s *chstate.Store) error {
			out := bufio.NewWriter(a.stdout)
			n := 0
			for id, err := range s.IDs(ctx, *pattern) {
				if err != nil {
					return err
				}
				n++
				fmt.Fprintln(out, id)
			}
			if n == 0 {
				fmt.Fprintln(a.stderr, "No state IDs found.")
			}
			return out.Flush()
		})
	})
	return cmd
}
