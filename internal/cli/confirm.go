package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// forceFlag adds --force, with which a command does not ask.
func forceFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("force", false, "don't ask for confirmation")
}

// consent asks before a command replaces or removes something, unless --force was said.
func (a *app) consent(ctx context.Context, force bool, question string) error {
	if force {
		return nil
	}
	return a.confirm(ctx, question)
}

// confirm asks on the terminal whether to go on, as `meltano state` does. Where
// nobody can answer it refuses: a script has to say --force.
func (a *app) confirm(ctx context.Context, question string) error {
	in, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usageError{fmt.Sprintf("%s There is no terminal to answer on: say --force to go on without being asked", question)}
	}
	fmt.Fprintf(a.errors, "%s [y/N]: ", question)
	answers := make(chan string, 1)
	go func() { // a read from a terminal cannot be called off
		line, _ := bufio.NewReader(in).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		fmt.Fprintln(a.errors)
		return errDeclined
	}
}
