package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/statedoc"
)

func (a *app) setCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set STATE_ID [STATE]",
		Short: "Write a state over what is there",
		Long: `Write a complete state, under the lock. STATE is JSON with "singer_state" at the top,
as "chstate get" prints it; --input-file reads it from a file (UTF-8, with or without
byte order mark), or from standard input with "-".`,
		Example: `  chstate set dev:tap-a-to-target-b '{"singer_state":{"bookmarks":{"users":{"replication_key_value":7}}}}'
  chstate get dev:tap-a-to-target-b | chstate set prod:tap-a-to-target-b --input-file - --force`,
		Args: takes(1, "a state id", "a state"),
	}
	file := cmd.Flags().String("input-file", "", "file with the state, - for standard input")
	noValidate := cmd.Flags().Bool("no-validate", false, `store any JSON object, also without "singer_state" (not recommended)`)
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		id := args[0]
		text, err := a.stateText(args[1:], *file, cmd.Flags().Changed("input-file"))
		if err != nil {
			return err
		}
		shape, err := checkState(text, !*noValidate)
		if err != nil {
			return err
		}
		a.warnOf(shape, text)
		if err := a.consent(ctx, *force, "This will overwrite the state's current value. Continue?"); err != nil {
			return err
		}
		return a.withStore(ctx, "set "+id, func(s *chstate.Store) error {
			// As Meltano: a complete state that replaces both halves.
			if err := s.Update(ctx, chstate.State{ID: id, Completed: text}); err != nil {
				return err
			}
			if !statedoc.Empty(text) {
				fmt.Fprintf(a.stderr, "State for %s was set.\n", id)
			}
			return nil
		})
	})
	return cmd
}

// warnOf says what a state will do that its writer may not have meant.
func (a *app) warnOf(shape statedoc.Shape, text []byte) {
	switch {
	case statedoc.Empty(text):
		fmt.Fprintln(a.stderr, "chstate: warning: {} counts as nothing new, so a state that is there stays as it is; chstate clear removes it")
	case shape.NoBookmarks:
		fmt.Fprintln(a.stderr, "chstate: warning: this state has no bookmarks: the next run starts from the beginning")
	case !shape.Wrapped:
		fmt.Fprintln(a.stderr, `chstate: warning: this state has no "singer_state" at the top: Meltano will find no bookmarks in it, and the next run starts from the beginning`)
	}
}
