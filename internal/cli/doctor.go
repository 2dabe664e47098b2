package cli

import (
	"bufio"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether all is well, and say what to do where it is not",
		Long: `Look at everything that the state needs: the way to the server, TLS, login, version, grants,
tables, the lock's strategy, who answers at the address, clocks, answer times, parts
and mutations, and states that are odd. Nothing is made or changed. It ends with
code 1 when something failed, 5 when the server cannot be reached or the login was refused.`,
		Args: takes(0),
	}
	format := choiceFlag(cmd, "format", "text; json: a list of {check, level, detail, advice}", "text", "json")
	cmd.RunE = a.work(func(ctx context.Context, _ []string) error {
		return a.withStore(ctx, "doctor", func(s *chstate.Store) error {
			found := s.Diagnose(ctx)
			if *format == "json" {
				if err := writeJSON(a.stdout, found); err != nil {
					return err
				}
			} else if err := a.printFindings(found); err != nil {
				return err
			}
			return verdict(found)
		})
	})
	return cmd
}

func (a *app) printFindings(found []chstate.Finding) error {
	out := bufio.NewWriter(a.stdout)
	colours := map[chstate.Level]string{chstate.OK: green, chstate.Warn: yellow, chstate.Fail: red}
	paint := a.paint()
	for _, f := range found {
		fmt.Fprintf(out, "%s %-9s %s", paint(colours[f.Level], fmt.Sprintf("%-4s", f.Level)), f.Check, oneLine(f.Detail))
		if f.Advice != "" {
			fmt.Fprintf(out, " — %s", oneLine(f.Advice))
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// verdict gives the error that the findings amount to; the code is that of the first failure.
func verdict(found []chstate.Finding) error {
	var first error
	failed := 0
	for _, f := range found {
		if f.Level != chstate.Fail {
			continue
		}
		if failed++; failed == 1 {
			first = f.Err
		}
	}
	if failed == 0 {
		return nil
	}
	code := exitFailed
	if first != nil && exitCode(first) == exitConnect {
		code = exitConnect
	}
	return ended{code, fmt.Errorf("%d of %d checks failed", failed, len(found))}
}
