package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/config"
)

func (a *app) initCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the tables, or print their SQL",
		Long: `Make what is missing of the database and the tables. Every other command does so at
the first write, too; this one is for doing it at a chosen time, or with another login.
--print-sql connects to nothing: it prints the statements, GRANTs included, for an
administrator to run. --views adds two views for SQL and dashboards: <table>_current,
the states, and <table>_bookmarks, a row for each stream (state_id, stream,
replication_key, value, updated_at).`,
		Args: takes(0),
	}
	printSQL := cmd.Flags().Bool("print-sql", false, "print the statements instead of running them")
	views := cmd.Flags().Bool("views", false, "make the views, too, or make them anew")
	cmd.RunE = a.work(func(ctx context.Context, _ []string) error {
		if *printSQL {
			// No login is needed to print, so none has to be set.
			r, err := a.resolve()
			if err != nil && (r == nil || !errors.Is(err, config.ErrMissing)) {
				return err
			}
			sql, err := chstate.InitSQL(r.Options)
			if err != nil {
				return err
			}
			if *views {
				more, err := chstate.ViewsSQL(r.Options)
				if err != nil {
					return err
				}
				sql += more
			}
			_, err = io.WriteString(a.stdout, sql)
			return err
		}
		return a.withStore(ctx, "init", func(s *chstate.Store) error {
			if err := s.Prepare(ctx); err != nil {
				return err
			}
			fmt.Fprintln(a.stderr, "The tables are ready.")
			if *views {
				if err := s.MakeViews(ctx); err != nil {
					return err
				}
				fmt.Fprintln(a.stderr, "The views are ready.")
			}
			return nil
		})
	})
	return cmd
}
