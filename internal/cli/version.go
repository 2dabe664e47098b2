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
		Args:  cobra.NoArgs,
		RunE: a.work(func(context.Context, []string) error {
			_, err := fmt.Fprintf(a.stdout, "chstate %s (%s, %s/%s)\n",
				version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}
