package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history STATE_ID",
		Short: "List the versions of a state",
		Long: `List the versions of a state that are known, newest first: when each was written, when,
by whom and why it was replaced, and its size. A run keeps the version from before it,
not one for each bookmark, for history_days.`,
		Example: `  chstate history prod:tap-a-to-target-b
  chstate history -- prune     # of the state id "prune"`,
		Args: takes(1, "a state id"),
	}
	format := choiceFlag(cmd, "format", "text: a table; json: a list", "text", "json")
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		return a.withStore(ctx, "history "+args[0], func(s *chstate.Store) error {
			return a.listVersions(ctx, s, args[0], *format)
		})
	})
	cmd.AddCommand(a.historyPruneCommand())
	return cmd
}

// versionLine is one version as it is printed.
type versionLine struct {
	Version    time.Time  `json:"version"`
	Current    bool       `json:"current"`
	ReplacedAt *time.Time `json:"replaced_at"`
	ReplacedBy string     `json:"replaced_by,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Size       int        `json:"size_bytes"`
}

func (a *app) listVersions(ctx context.Context, s *chstate.Store, id, format string) error {
	lines := []versionLine{}
	var rows [][]string
	for v, err := range s.History(ctx, id) {
		if err != nil {
			return err
		}
		line := versionLine{Version: v.UpdatedAt, Current: v.Current, ReplacedBy: v.ReplacedBy, Reason: v.Reason, Size: len(v.Completed) + len(v.Partial)}
		row := []string{versionText(v.UpdatedAt), "current", "", "", sizeText(line.Size)}
		if !v.Current {
			line.ReplacedAt = &v.ReplacedAt
			row = []string{versionText(v.UpdatedAt), versionText(v.ReplacedAt), v.Reason, v.ReplacedBy, sizeText(line.Size)}
		}
		lines, rows = append(lines, line), append(rows, row)
	}
	if len(lines) == 0 {
		return noVersion("no version of state %q is known", id)
	}
	if format == "json" {
		return writeJSON(a.stdout, lines)
	}
	return writeTable(a.stdout, []string{"VERSION", "REPLACED", "WHY", "BY", "SIZE"}, rows)
}

func noVersion(format string, args ...any) error {
	return &chstate.Error{Kind: chstate.ErrNoState, Reason: fmt.Sprintf(format, args...)}
}

func (a *app) historyPruneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prune --before TIME|AGE",
		Short: "Forget old versions of all states",
		Long: `Forget the versions of all states that were replaced before a moment. They cannot be
brought back. The server does so by itself after history_days.`,
		Example: `  chstate history prune --before 7d`,
		Args:    takes(0),
	}
	before := cmd.Flags().String("before", "", momentHelp)
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, _ []string) error {
		if *before == "" {
			return usageError{"say up to when: --before 7d, or a time"}
		}
		moment, err := parseMoment(*before, time.Now())
		if err != nil {
			return err
		}
		if err := a.consent(ctx, *force, fmt.Sprintf("This will forget what was replaced before %s, for good. Continue?", versionText(moment))); err != nil {
			return err
		}
		return a.withStore(ctx, "history prune", func(s *chstate.Store) error {
			n, err := s.PruneHistory(ctx, moment)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, "%d version(s) were forgotten.\n", n)
			return nil
		})
	})
	return cmd
}
