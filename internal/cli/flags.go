package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	choices []string
}

// choiceFlag adds such a flag; the first choice is the default. Its help lists them.
func choiceFlag(cmd *cobra.Command, name, help string, choices ...string) *string {
	c := &choice{value: choices[0], choices: choices}
	cmd.Flags().Var(c, name, help)
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a name given twice: a mistake of ours that any run shows
	}
	return &c.value
}

// Set takes the word in any case, as Meltano does.
func (c *choice) Set(s string) error {
	s = strings.ToLower(s)
	if !slices.Contains(c.choices, s) {
		return fmt.Errorf("choose one of %s", strings.Join(c.choices, ", "))
	}
	c.value = s
	return nil
}

func (c *choice) String() string { return c.value }

// Type is what help texts show for the value.
func (c *choice) Type() string { return strings.Join(c.choices, "|") }
