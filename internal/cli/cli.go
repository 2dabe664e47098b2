// Package cli is the command line tool chstate: one file for each command,
// each a few lines over the public library.
//
// Results go to stdout, everything else to stderr. The process's own streams,
// environment and exit code are left to the caller, so that tests can run the
// tool inside their own process.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the tool with the arguments after its name and with env as
// os.Environ gives it, and returns the exit code (see docs/cli.md).
func Main(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{env: env, stdin: stdin, stdout: stdout, stderr: stderr, errors: stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		return a.fail(cmd, err)
	}
	return exitDone
}

// Command gives the tool's commands, for the manual pages.
func Command() *cobra.Command { return new(app).rootCommand() }

// app is one run of the tool: where it reads, where it writes, and what was asked of it.
type app struct {
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	errors         io.Writer // stderr also with --quiet, for errors and questions

	quiet, verbose bool

	started  bool // a command began its work: errors from there on are not about its usage
	settings settingFlags
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "chstate",
		Short: "Meltano's state, kept in ClickHouse",
		Long: `chstate reads and writes the state that Meltano keeps in ClickHouse. In a Meltano
project it uses the project's own settings; elsewhere, MELTANO_STATE_BACKEND_URI
or flags say where the state is.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// It runs when the arguments were found good.
		PersistentPreRun: func(*cobra.Command, []string) {
			a.started = true
			if a.quiet {
				a.stderr = io.Discard
			}
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(wrongFlag)
	a.settings.register(root)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "say nothing but results, errors and questions")
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "tell each statement and its time, on stderr")
	root.AddCommand(
		a.listCommand(), a.getCommand(), a.setCommand(), a.clearCommand(),
		a.copyCommand(), a.moveCommand(), a.mergeCommand(), a.editCommand(),
		a.exportCommand(), a.importCommand(),
		a.historyCommand(), a.diffCommand(), a.rollbackCommand(), a.resetCommand(),
		a.bookmarksCommand(), a.checkCommand(), a.lockCommand(), a.doctorCommand(),
		a.initCommand(), a.configCommand(), a.versionCommand(), settingsTopic(),
		a.helperCommand(),
	)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if !cmd.Runnable() && cmd.HasSubCommands() {
			menu(cmd)
		}
	}
	menu(root)
	a.versionFlag(root)
	return root
}

// work makes a command's RunE of what the command does. Its context ends with
// Ctrl-C or SIGTERM; a second signal ends the process at once.
func (a *app) work(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		if err := do(ctx, args); err != nil {
			if ctx.Err() != nil {
				return interrupted{calledOff(err)}
			}
			return err
		}
		return nil
	}
}
