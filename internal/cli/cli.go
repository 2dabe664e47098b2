// Package cli is the command line tool chstate: one file for each command,
// each a few lines over the public library.
//
// Results go to stdout, everything else to stderr. Nothing here touches the
// process's own streams, environment or exit code, so that tests can run the
// tool inside their own process.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// Main runs the tool with the arguments after its name and with env as
// os.Environ gives it, and returns the exit code (see docs/cli.md).
func Main(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{env: env, stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		return a.fail(err)
	}
	return exitDone
}

// app is one run of the tool: where it reads, where it writes, and what was asked of it.
type app struct {
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "chstate",
		Short:         "Meltano's state, kept in ClickHouse",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(a.versionCommand())
	return root
}
