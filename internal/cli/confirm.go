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

// answerable is for a command that looks before it asks: it fails as consent
// would where nobody can answer, before anything is connected to.
func (a *app) answerable(force bool, question string) error {
	if force {
		return nil
	}
	_, err := a.terminal(question)
	return err
}

// terminal gives the one to ask on. Where there is none nobody can answer: a
// script has to say --force.
func (a *app) terminal(question string) (*os.File, error) {
	in, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, usageError{fmt.Sprintf("%s There is no terminal to answer on: say --force to go on without being asked", question)}
	}
	return in, nil
}

// confirm asks on the terminal whether to go on, as `meltano state` does.
func (a *app) confirm(ctx context.Context, question string) error {
	in, err := a.terminal(question)
	if err != nil {
		return err
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
