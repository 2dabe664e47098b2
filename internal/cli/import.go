package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/statedoc"
)

func (a *app) importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import [INPUT_FILE]",
		Short: "Write states that export printed",
		Long: `Write the states of a file that "chstate export" or "meltano state export" printed, or of
standard input, over those that are there. Everything is read and checked before
anything is written; states that the file does not name stay. As in Meltano, no locks
are taken: import while no pipeline runs.`,
		Example: `  chstate import --dry-run states.json
  ssh old-server meltano state export | chstate import`,
		Args: takes(0, "a file"),
	}
	dryRun := cmd.Flags().Bool("dry-run", false, "write nothing: print each id with what would be done (new, replace, same)")
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		states, err := a.readExport(args)
		if err != nil {
			return err
		}
		if *dryRun {
			return a.withStore(ctx, "import --dry-run", func(s *chstate.Store) error { return a.planImport(ctx, s, states) })
		}
		progress := a.newBar("importing")
		return a.withStoreAs(ctx, "import", progress.apply, func(s *chstate.Store) error {
			n, err := s.SetAll(ctx, each(states))
			progress.clear()
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, "%d state(s) were imported.\n", n)
			return nil
		})
	})
	return cmd
}

func (a *app) readExport(args []string) ([]chstate.State, error) {
	in, from := a.stdin, "standard input"
	if len(args) == 1 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, usageError{fmt.Sprintf("cannot read the states: %v", err)}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, usageError{fmt.Sprintf("cannot read the states: %s is a folder", args[0])}
		}
		in, from = f, args[0]
	}
	states, err := chstate.ReadExport(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return states, nil
}

// each gives states as the library takes many of them.
func each(states []chstate.State) iter.Seq2[chstate.State, error] {
	return func(yield func(chstate.State, error) bool) {
		for _, st := range states {
			if !yield(st, nil) {
				return
			}
		}
	}
}

// planImport says what an import would do.
func (a *app) planImport(ctx context.Context, s *chstate.Store, states []chstate.State) error {
	ids := make([]string, len(states))
	for i, st := range states {
		ids[i] = st.ID
	}
	there := make(map[string]bool, len(states)) // the same already?
	given := make(map[string]chstate.State, len(states))
	for _, st := range states {
		given[st.ID] = st
	}
	for st, err := range s.Of(ctx, ids) {
		if err != nil {
			return err
		}
		is := given[st.ID]
		there[st.ID] = sameText(st.Completed, is.Completed) && sameText(st.Partial, is.Partial)
	}
	out := bufio.NewWriter(a.stdout)
	counts := map[string]int{}
	for _, st := range states {
		what := "new"
		if same, ok := there[st.ID]; ok {
			what = "replace"
			if same {
				what = "same"
			}
		}
		counts[what]++
		fmt.Fprintf(out, "%s\t%s\n", what, st.ID)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "%d state(s) would be imported: %d new, %d replaced, %d the same. Nothing was written.\n",
		len(states), counts["new"], counts["replace"], counts["same"])
	return nil
}

// sameText compares two halves but for their spaces.
func sameText(x, y []byte) bool {
	if statedoc.Empty(x) || statedoc.Empty(y) {
		return statedoc.Empty(x) && statedoc.Empty(y)
	}
	cx, errX := statedoc.Compact(x)
	cy, errY := statedoc.Compact(y)
	return errX == nil && errY == nil && bytes.Equal(cx, cy)
}
