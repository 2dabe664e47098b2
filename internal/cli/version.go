package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate/internal/version"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  takes(0),
		RunE:  a.work(func(context.Context, []string) error { return a.printVersion() }),
	}
}

func (a *app) printVersion() error {
	_, err := fmt.Fprintf(a.stdout, "chstate %s (%s, %s/%s)\n",
		version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionFlag lets `chstate --version` do what the command does: many look for
// it there.
func (a *app) versionFlag(root *cobra.Command) {
	asked := root.Flags().Bool("version", false, "print the version")
	otherwise := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			return a.printVersion()
		}
		return otherwise(cmd, args)
	}
}
