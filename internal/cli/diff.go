package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff STATE_ID [OLD [NEW]]",
		Short: "Show how two versions of a state differ",
		Long: `Show how two versions of a state differ, by stream and bookmark; the order of names and
spaces make no difference. NEW is the current state unless it is given (none, where it
was cleared), OLD the one before it. Either is ` + momentHelp + `.`,
		Example: `  chstate diff prod:tap-a-to-target-b
  chstate diff prod:tap-a-to-target-b 2d`,
		Args: takes(1, "a state id", "an older version", "a newer version"),
	}
	format := choiceFlag(cmd, "format", "text; json: a list of {stream, path, old, new}", "text", "json")
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		return a.withStore(ctx, "diff "+args[0], func(s *chstate.Store) error {
			old, now, err := versionsFor(ctx, s, args[0], args[1:])
			if err != nil {
				return err
			}
			changes, err := chstate.Diff(old.State, now.State)
			if err != nil {
				return err
			}
			if *format == "json" {
				return writeJSON(a.stdout, changeLines(changes))
			}
			return a.printDiff(old, now, changes)
		})
	})
	return cmd
}

// versionsFor finds the versions that OLD and NEW name.
func versionsFor(ctx context.Context, s *chstate.Store, id string, named []string) (old, now chstate.Version, err error) {
	at := func(text string) (chstate.Version, error) {
		moment, err := parseMoment(text, time.Now())
		if err != nil {
			return chstate.Version{}, err
		}
		return s.VersionAt(ctx, id, moment)
	}
	if len(named) == 2 {
		if old, err = at(named[0]); err != nil {
			return old, now, err
		}
		now, err = at(named[1])
		return old, now, err
	}
	var newest []chstate.Version
	for v, err := range s.History(ctx, id) {
		if err != nil {
			return old, now, err
		}
		if newest = append(newest, v); len(newest) == 2 {
			break
		}
	}
	if len(newest) == 0 {
		return old, now, noVersion("no version of state %q is known", id)
	}
	now, earlier := chstate.Version{State: chstate.State{ID: id}, Current: true}, newest // it was cleared
	if newest[0].Current {
		now, earlier = newest[0], newest[1:]
	}
	if len(named) == 1 {
		old, err = at(named[0])
		return old, now, err
	}
	if len(earlier) == 0 {
		return old, now, noVersion("no earlier version of state %q is known", id)
	}
	return earlier[0], now, nil
}

func (a *app) printDiff(old, now chstate.Version, changes []chstate.Change) error {
	if len(changes) == 0 {
		fmt.Fprintln(a.stderr, "There is no difference.")
		return nil
	}
	paint := a.paint()
	out := bufio.NewWriter(a.stdout)
	fmt.Fprintln(out, paint(bold, "--- "+versionTitle(old)))
	fmt.Fprintln(out, paint(bold, "+++ "+versionTitle(now)))
	stream, first := "", true
	for _, c := range changes {
		if c.Stream != stream || first {
			stream, first = c.Stream, false
			title := "stream " + cell(stream)
			if stream == "" {
				title = "outside of the bookmarks"
			}
			fmt.Fprintln(out, paint(bold, title))
		}
		path := c.Path
		if path != "" {
			path += ": "
		}
		if c.Old != nil {
			fmt.Fprintln(out, paint(red, fmt.Sprintf("- %s%s", path, c.Old)))
		}
		if c.New != nil {
			fmt.Fprintln(out, paint(green, fmt.Sprintf("+ %s%s", path, c.New)))
		}
	}
	return out.Flush()
}

func versionTitle(v chstate.Version) string {
	title := versionText(v.UpdatedAt)
	if v.UpdatedAt.IsZero() {
		title = "no state"
	}
	if v.Current {
		title += " (current)"
	}
	return title
}

type changeLine struct {
	Stream string          `json:"stream"`
	Path   string          `json:"path"`
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
}

func changeLines(changes []chstate.Change) []changeLine {
	lines := make([]changeLine, len(changes))
	for i, c := range changes {
		lines[i] = changeLine{Stream: c.Stream, Path: c.Path, Old: literal(c.Old), New: literal(c.New)}
	}
	return lines
}
