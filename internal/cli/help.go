package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate/internal/config"
)

// usage prints how a command is called. It is shorter than cobra's own: the
// flags that every command has, some thirty, would drown the command's. (A
// template instead of a function would make the binary five megabytes larger.)
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && cmd.Annotations[isMenu] == "" {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if own := cmd.LocalNonPersistentFlags(); own.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", own.FlagUsages())
	}
	b.WriteString("\nEvery command takes --quiet and --verbose, and each setting as a flag (--uri, --host,\n--project, …): see chstate help settings\n")
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

// helpCommand is cobra's own, but that it ends with the code of a mistake where
// it knows nothing of what was asked.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Tell more about a command",
		Long:  `Tell what a command does and which flags it takes, as "chstate COMMAND --help" does.`,
		Example: `  chstate help history prune
  chstate help settings`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if parent, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, sub := range parent.Commands() {
					if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = unknownCommand(topic, rest[0])
			}
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, _, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			topic.InitDefaultHelpFlag() // so that it is shown
			return topic.Help()
		},
	}
}

// settingsTopic is the help text that lists the settings.
func settingsTopic() *cobra.Command {
	topic := &cobra.Command{Use: "settings", Short: "What can be set, and by which names"}
	topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		fmt.Fprint(cmd.OutOrStdout(), `Where the state is kept and how it is locked follows from these, strongest first: flags;
the environment; the Meltano project's .env; state_backend in its meltano.yml; the URI.
"chstate config" shows each value in force and where it came from.

`)
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  --project\tFolder of the Meltano project; else it is looked for from here upwards.")
		for _, s := range config.Settings() {
			flag := "(a secret: no flag)"
			if s.Flag() != "" {
				flag = "--" + s.Flag()
			}
			fmt.Fprintf(w, "  %s\t%s\n  \t%s\n", flag, s.Help, s.Env())
		}
		_ = w.Flush() // nothing could be done about a terminal that is gone
	})
	return topic
}
