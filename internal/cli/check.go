package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check --max-age AGE",
		Short: "Find states that were not written for too long",
		Long: `Print the states that no run has written for longer than --max-age, by the server's clock,
and end with code 1 when there are any, or when no state matches --pattern.`,
		Example: `  chstate check --max-age 26h --pattern 'prod:*' || alert`,
		Args:    takes(0),
	}
	var limit age
	cmd.Flags().Var(&limit, "max-age", "how long ago a state may have been written: 90m, 26h, 7d")
	pattern := patternFlag(cmd)
	format := choiceFlag(cmd, "format", "text: a table; json: a list", "text", "json")
	cmd.RunE = a.work(func(ctx context.Context, _ []string) error {
		if limit.d <= 0 {
			return usageError{"say how old a state may be: --max-age 26h"}
		}
		return a.withStore(ctx, "check", func(s *chstate.Store) error {
			ages, err := s.Ages(ctx, *pattern)
			if err != nil {
				return err
			}
			late := []lateLine{}
			rows := [][]string{}
			for _, st := range ages {
				if st.Age > limit.d {
					late = append(late, lateLine{st.ID, st.UpdatedAt, int64(st.Age / time.Second)})
					rows = append(rows, []string{st.ID, versionText(st.UpdatedAt), ageText(st.Age)})
				}
			}
			switch {
			case *format == "json":
				err = writeJSON(a.stdout, late)
			case len(late) > 0:
				err = writeTable(a.stdout, []string{"STATE ID", "UPDATED", "AGE"}, rows)
			}
			switch {
			case err != nil:
				return err
			case len(ages) == 0:
				return fmt.Errorf("no state was found to check — `chstate list` shows what there is")
			case len(late) > 0:
				return fmt.Errorf("%d of %d states were not written for more than %s", len(late), len(ages), ageText(limit.d))
			}
			return nil
		})
	})
	return cmd
}

type lateLine struct {
	ID         string    `json:"id"`
	UpdatedAt  time.Time `json:"updated_at"`
	AgeSeconds int64     `json:"age_seconds"`
}
