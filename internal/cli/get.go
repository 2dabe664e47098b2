package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/statedoc"
)

func (a *app) getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get STATE_ID",
		Short: "Print a state as the next run will get it",
		Long: `Print the state that the next run starts from: the bookmarks of unfinished runs
merged onto the state of the last finished one. "chstate set" accepts what this prints.`,
		Args: takes(1, "a state id"),
	}
	format := choiceFlag(cmd, "format", "json: on one line; pretty: indented, for reading", "json", "pretty")
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		id := args[0]
		return a.withStore(ctx, "get "+id, func(s *chstate.Store) error {
			st, err := s.Get(ctx, id)
			if err != nil {
				return err
			}
			text, err := st.Merged()
			if err != nil {
				return err
			}
			if *format == "pretty" {
				if text, err = statedoc.Pretty(text); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(a.stdout, "%s\n", text)
			return err
		})
	})
	return cmd
}
