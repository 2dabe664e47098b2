package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print all states as one JSON object",
		Long: `Print the states in the format of meltano state export: one JSON object of
{"completed": …, "partial": …} by state id, which "chstate import" and
"meltano state import" read. A state that is not usable is named and left out, and the
command ends with code 1.`,
		Example: `  chstate export > states.json
  chstate export --pattern 'prod:*' > prod.json`,
		Args: takes(0),
	}
	pattern := patternFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, _ []string) error {
		progress := a.newBar("exporting")
		return a.withStoreAs(ctx, "export", progress.apply, func(s *chstate.Store) error {
			defer progress.clear()
			if progress != nil { // only a bar needs to know how many there are
				for _, err := range s.IDs(ctx, *pattern) {
					if err != nil {
						return err
					}
					progress.total++
				}
			}
			done, err := s.Export(ctx, a.stdout, *pattern)
			if err != nil {
				return err
			}
			progress.clear()
			for _, why := range done.LeftOut {
				fmt.Fprintf(a.errors, "chstate: left out: %v\n", why)
			}
			if n := len(done.LeftOut); n > 0 {
				return fmt.Errorf("%d of %d states were left out", n, n+done.States)
			}
			return nil
		})
	})
	return cmd
}

// patternFlag adds --pattern.
func patternFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("pattern", "", "only ids that match this glob: * ? [abc] [!abc], all else literal")
}
