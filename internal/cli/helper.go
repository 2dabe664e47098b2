package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate/internal/service"
	"github.com/chstate/chstate/internal/version"
)

// helperCommand is how the Python add-on starts the tool: see package service.
// Nobody types it, so that it is not shown.
func (a *app) helperCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "helper",
		Short:  "Serve the Meltano add-on: JSON lines on stdin and stdout",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Ctrl-C is Meltano's business. A parent that has gone must not end
			// us by a broken pipe, before the locks are given back.
			signal.Ignore(os.Interrupt, syscall.SIGPIPE, syscall.SIGHUP)
			ctx, stop := signal.NotifyContext(context.WithoutCancel(cmd.Context()), syscall.SIGTERM)
			defer stop()
			return service.Run(ctx, a.stdin, a.stdout, a.stderr, service.Config{
				Version: version.Version,
				Open:    service.OpenStore,
			})
		},
	}
}
