package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the state ids, one on a line",
		Long: `List the state ids. --long adds when each state was written and how long ago (by the
server's clock), its size, its number of streams, who holds its lock, and what is
wrong with it where it is not usable.`,
		Example: `  chstate list
  chstate list --pattern 'prod:*-to-target-clickhouse'
  chstate list --long --format json | jq -r '.[] | select(.problem) | .id'`,
		Args: takes(0),
	}
	pattern := patternFlag(cmd)
	long := cmd.Flags().BoolP("long", "l", false, "tell more of each state")
	format := choiceFlag(cmd, "format", "text; json: a list; csv: with a line of names", "text", "json", "csv")
	cmd.RunE = a.work(func(ctx context.Context, _ []string) error {
		return a.withStore(ctx, "list", func(s *chstate.Store) error {
			if *long {
				return a.listLong(ctx, s, *pattern, *format)
			}
			return a.listIDs(ctx, s, *pattern, *format)
		})
	})
	return cmd
}

func (a *app) listIDs(ctx context.Context, s *chstate.Store, pattern, format string) error {
	if format == "text" {
		return a.listText(ctx, s, pattern)
	}
	ids := []string{}
	rows := [][]string{}
	for id, err := range s.IDs(ctx, pattern) {
		if err != nil {
			return err
		}
		ids = append(ids, id)
		rows = append(rows, []string{id})
	}
	if format == "csv" {
		return writeCSV(a.stdout, []string{"id"}, rows)
	}
	return writeJSON(a.stdout, ids)
}

func (a *app) listText(ctx context.Context, s *chstate.Store, pattern string) error {
	out := bufio.NewWriterSize(a.stdout, 64<<10)
	n := 0
	shown := func(id string) string { return id } // scripts want it as it is
	if isTerminal(a.stdout) {
		shown = printable
	}
	for id, err := range s.IDs(ctx, pattern) {
		if err != nil {
			return err
		}
		n++
		_, _ = out.WriteString(shown(id)) // Flush gives the error
		_ = out.WriteByte('\n')
	}
	if n == 0 {
		fmt.Fprintln(a.stderr, "No state IDs found.")
	}
	return out.Flush()
}

// listed is one line of list --long.
type listed struct {
	ID         string    `json:"id"`
	UpdatedAt  time.Time `json:"updated_at"`
	AgeSeconds int64     `json:"age_seconds"`
	Size       int       `json:"size_bytes"`
	Streams    int       `json:"streams"`
	Holder     *lockLine `json:"holder"`
	Problem    string    `json:"problem,omitempty"`

	age time.Duration
}

func (a *app) listLong(ctx context.Context, s *chstate.Store, pattern, format string) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	holders, err := holdersByID(ctx, s)
	if err != nil {
		return err
	}
	lines := []listed{}
	for st, err := range s.All(ctx, pattern) {
		if err != nil {
			return err
		}
		line := listed{
			ID: st.ID, UpdatedAt: st.UpdatedAt, Size: len(st.Completed) + len(st.Partial),
			Holder: holders[st.ID], age: now.Sub(st.UpdatedAt),
		}
		line.AgeSeconds = int64(line.age / time.Second)
		marks, err := st.Bookmarks()
		line.Streams = len(marks)
		if err != nil {
			line.Problem = problem(cmp.Or(st.Check(), err)) // the first names the half
		}
		lines = append(lines, line)
	}
	if format == "json" {
		return writeJSON(a.stdout, lines)
	}
	paint := a.paint()
	rows := make([][]string, len(lines))
	for i, l := range lines {
		streams := strconv.Itoa(l.Streams)
		if format == "csv" {
			rows[i] = []string{l.ID, versionText(l.UpdatedAt), strconv.FormatInt(l.AgeSeconds, 10), strconv.Itoa(l.Size), streams, l.Holder.who(), l.Problem}
			continue
		}
		note := l.Problem
		if note != "" {
			note = paint(red, "bad: "+note)
		}
		rows[i] = []string{l.ID, versionText(l.UpdatedAt), ageText(l.age), sizeText(l.Size), streams, l.Holder.who(), note}
	}
	if format == "csv" {
		return writeCSV(a.stdout, []string{"id", "updated_at", "age_seconds", "size_bytes", "streams", "holder", "problem"}, rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.stderr, "No state IDs found.")
		return nil
	}
	return writeTable(a.stdout, []string{"STATE ID", "UPDATED", "AGE", "SIZE", "STREAMS", "HOLDER", "NOTE"}, rows)
}

// problem says what is wrong with a state, without the advice and the id that
// the whole error has.
func problem(err error) string {
	var e *chstate.Error
	if errors.As(err, &e) && e.Err != nil {
		return oneLine(e.Err.Error())
	}
	return oneLine(err.Error())
}

// sizeText writes a number of bytes for people.
func sizeText(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
