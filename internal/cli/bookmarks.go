package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) bookmarksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bookmarks [STATE_ID]",
		Short: "List where each stream got to",
		Long: `List the bookmarks of one state, of those that match --pattern, or of all, one stream on a
line: replication key, value, and how long ago that is where it is a time. Of a
bookmark in partitions the greatest value is shown; of one that is of no known form,
the whole.`,
		Example: `  chstate bookmarks prod:tap-a-to-target-b
  chstate bookmarks --pattern 'prod:*' --format csv`,
		Args: takes(0, "a state id"),
	}
	pattern := patternFlag(cmd)
	format := choiceFlag(cmd, "format", "text: a table; json: a list; csv: with a line of names", "text", "json", "csv")
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		if len(args) == 1 && cmd.Flags().Changed("pattern") {
			return usageError{"give either a state id or --pattern, and not both"}
		}
		return a.withStore(ctx, "bookmarks", func(s *chstate.Store) error {
			now, err := s.Now(ctx)
			if err != nil {
				return err
			}
			states := s.All(ctx, *pattern)
			if len(args) == 1 {
				st, err := s.Get(ctx, args[0])
				if err != nil {
					return err
				}
				states = each([]chstate.State{st})
			}
			lines, bad, err := bookmarkLines(states, now)
			if err != nil {
				return err
			}
			if err := a.printBookmarks(lines, *format); err != nil {
				return err
			}
			for _, why := range bad {
				fmt.Fprintf(a.errors, "chstate: left out: %v\n", why)
			}
			if len(bad) > 0 {
				return fmt.Errorf("%d state(s) were left out", len(bad))
			}
			return nil
		})
	})
	return cmd
}

// bookmarkLine is one bookmark as it is printed.
type bookmarkLine struct {
	ID         string          `json:"id"`
	Stream     string          `json:"stream"`
	Key        string          `json:"replication_key"`
	Value      json.RawMessage `json:"value"`
	AgeSeconds *int64          `json:"age_seconds,omitempty"`
	Partitions int             `json:"partitions,omitempty"`
	UpdatedAt  time.Time       `json:"updated_at"`

	text string // the value for people: text without its quotes
	age  string
}

// bookmarkLines reads the bookmarks of states; bad says which are not usable.
func bookmarkLines(states iter.Seq2[chstate.State, error], now time.Time) (lines []bookmarkLine, bad []error, err error) {
	lines = []bookmarkLine{}
	for st, err := range states {
		if err != nil {
			return nil, nil, err
		}
		marks, err := st.Bookmarks()
		if err != nil {
			bad = append(bad, err)
			continue
		}
		for _, b := range marks {
			line := bookmarkLine{
				ID: st.ID, Stream: b.Stream, Key: b.Key, Value: literal(b.Value), Partitions: b.Partitions,
				UpdatedAt: st.UpdatedAt, text: string(b.Value),
			}
			var text string
			if json.Unmarshal(b.Value, &text) == nil {
				line.text = text
			}
			if at, ok := b.Time(); ok {
				ago := now.Sub(at)
				seconds := int64(ago / time.Second)
				line.AgeSeconds, line.age = &seconds, ageText(ago)
			}
			lines = append(lines, line)
		}
	}
	return lines, bad, nil
}

func (a *app) printBookmarks(lines []bookmarkLine, format string) error {
	if format == "json" {
		return writeJSON(a.stdout, lines)
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{l.ID, l.Stream, l.Key, l.text, l.age}
		if format == "csv" {
			rows[i][4] = ""
			if l.AgeSeconds != nil {
				rows[i][4] = strconv.FormatInt(*l.AgeSeconds, 10)
			}
			rows[i] = append(rows[i], strconv.Itoa(l.Partitions), versionText(l.UpdatedAt))
		}
	}
	if format == "csv" {
		return writeCSV(a.stdout, []string{"id", "stream", "replication_key", "value", "age_seconds", "partitions", "updated_at"}, rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.stderr, "There are no bookmarks.")
		return nil
	}
	return writeTable(a.stdout, []string{"STATE ID", "STREAM", "KEY", "VALUE", "AGE"}, rows)
}
