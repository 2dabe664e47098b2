package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting, its value and where it came from",
		Long: `Show every setting with the value in force and where it came from. Secrets are shown
as ***. Nothing is connected to.`,
		Args: takes(0),
	}
	format := choiceFlag(cmd, "format", "text: a table; json: a list of {name, value, source}", "text", "json")
	cmd.RunE = a.work(func(context.Context, []string) error {
		r, err := a.resolve()
		if err != nil && (r == nil || !errors.Is(err, config.ErrMissing)) {
			return err
		}
		// Where only a required setting is missing, show what there is, and then say so.
		for _, notice := range r.Notices {
			fmt.Fprintf(a.stderr, "chstate: %s\n", notice)
		}
		return errors.Join(a.printValues(r.Values, *format), err)
	})
	return cmd
}

func (a *app) printValues(values []config.Value, format string) error {
	if format == "json" {
		return writeJSON(a.stdout, values)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tSOURCE")
	for _, v := range values {
		value := v.Value
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, value, v.Source)
	}
	return w.Flush()
}
