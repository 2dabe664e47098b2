package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takes checks a command's arguments by the names that they go by in messages,
// the first least of which must be there. Whatever is called a state id must
// not be empty: that is a shell variable without a value, and never meant.
func takes(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, arg := range args {
			switch {
			case i >= len(names):
				return surplus(cmd, args, len(names))
			case arg == "" && strings.Contains(names[i], "state id"):
				return fmt.Errorf("`%s` was given an empty state id: %s", cmd.CommandPath(), usageLine(cmd))
			}
		}
		if len(args) < least {
			return fmt.Errorf("`%s` needs %s: %s", cmd.CommandPath(), names[len(args)], usageLine(cmd))
		}
		return nil
	}
}

// surplus says which argument is too many, and what may have been meant by it.
func surplus(cmd *cobra.Command, args []string, most int) error {
	advice := ""
	switch {
	case cmd.ArgsLenAtDash() >= 0 && strings.HasPrefix(args[most], "-"):
		advice = " — behind -- there are no flags: give them before it"
	case most > 0:
		advice = " — quote what has spaces in it"
	}
	return fmt.Errorf("%q is one argument too many: %s%s", args[most], usageLine(cmd), advice)
}

// usageLine is how a command is called, without its flags.
func usageLine(cmd *cobra.Command) string {
	_, rest, _ := strings.Cut(cmd.Use, " ")
	return strings.TrimSpace(cmd.CommandPath() + " " + rest)
}

// menu makes a command of one that has only commands below it: by itself it
// prints its help, and any other word is refused. (cobra would print the help
// for that, too, and end as if all was well.)
func menu(cmd *cobra.Command) {
	cmd.Annotations = map[string]string{isMenu: "yes"}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// isMenu is the annotation of such commands.
const isMenu = "menu"

// unknownCommand says what may have been meant instead.
func unknownCommand(parent *cobra.Command, word string) error {
	const few = 6
	advice := ""
	if all := available(parent); len(all) > few {
		parent.SuggestionsMinimumDistance = 2
		if names := parent.SuggestionsFor(word); len(names) > 0 {
			advice = " — perhaps " + strings.Join(names, " or ") + " is meant"
		}
	} else if len(all) > 0 {
		advice = " — there are " + strings.Join(all, ", ")
	}
	return fmt.Errorf("unknown command %q for %q%s", word, parent.CommandPath(), advice)
}

// available are the commands below another one that its help lists.
func available(parent *cobra.Command) []string {
	var names []string
	for _, cmd := range parent.Commands() {
		if cmd.IsAvailableCommand() {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// wrongFlag says of a value that is not good which flag it is for, and of a
// letter that is no flag what else it may be.
func wrongFlag(_ *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var number *strconv.NumError // of pflag's own kinds; pflag's own text is better
	switch {
	case errors.As(err, &value) && !errors.As(err, &number):
		return fmt.Errorf("--%s %s: %w", value.GetFlag().Name, value.GetValue(), errors.Unwrap(value))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("%w — a state id that begins with a dash goes behind --, after the flags", err)
	default:
		return err
	}
}
