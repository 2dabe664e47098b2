// Command man writes the tool's manual pages into the folder that it is given:
// see the target man in the Makefile. It is apart from the tool so that the
// tool does not carry what only these pages need.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/chstate/chstate/internal/cli"
	"github.com/chstate/chstate/internal/version"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root := cli.Command()
	root.DisableAutoGenTag = true // the date would make each build another one
	if err := page(root, folder); err != nil {
		return err
	}
	// The settings are flags of every command; one page with them is enough.
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	return below(root, folder)
}

func below(cmd *cobra.Command, folder string) error {
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if sub.Long == "" {
			sub.Long = sub.Short
		}
		sub.Long += "\n\nEvery setting is a flag, too: see chstate(1)."
		if err := page(sub, folder); err != nil {
			return err
		}
		if err := below(sub, folder); err != nil {
			return err
		}
	}
	return nil
}

func page(cmd *cobra.Command, folder string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	f, err := os.Create(filepath.Join(folder, name+".1"))
	if err != nil {
		return err
	}
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "chstate " + version.Version, Manual: "chstate"}
	if err := doc.GenMan(cmd, header, f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
