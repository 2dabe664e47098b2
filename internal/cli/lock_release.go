package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) lockReleaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release STATE_ID",
		Short: "Break a lock that somebody else holds",
		Long: `Take a state's lock away from whoever holds it (run:STATE_ID: the lock of its whole run).
Do so when you are sure that the holder is dead, or want it stopped: one that lives
notices within a third of its lease, and what it still writes until then never shows
over what the next holder writes. --id names one claim, so that not another is hit
that came meanwhile. That nothing is locked is no error.`,
		Example: `  chstate lock release prod:tap-a-to-target-b --id '!0190b2…'`,
		Args:    takes(1, "a state id"),
	}
	claim := cmd.Flags().String("id", "", `break only the claim of this lock id, as "chstate lock show" prints it`)
	force := forceFlag(cmd)
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		id := args[0]
		return a.withStore(ctx, "lock release "+id, func(s *chstate.Store) error {
			held, err := heldBy(ctx, s, id, *claim)
			if err != nil {
				return err
			}
			if len(held) == 0 && *claim != "" {
				// "lock show ID" lists the lock of the whole run as well.
				if held, err = heldBy(ctx, s, chstate.RunKey(id), *claim); err != nil {
					return err
				}
				if len(held) > 0 {
					id = chstate.RunKey(id)
				}
			}
			if len(held) == 0 && *claim == "" {
				return a.nothingHeld(ctx, s, id)
			}
			if len(held) > 0 {
				question := fmt.Sprintf("This will break the lock that %s holds. Continue?", holders(held))
				if err := a.consent(ctx, *force, question); err != nil {
					return err
				}
			}
			broken, err := s.BreakLock(ctx, id, *claim)
			for _, l := range broken {
				line := lockLineOf(l)
				fmt.Fprintf(a.stderr, "The lock of %s was broken: %s held it since %s (%s ago).\n", id, line.who(), versionText(line.Since), ageText(line.age))
			}
			if err != nil {
				return err
			}
			if len(broken) == 0 {
				fmt.Fprintf(a.stderr, "The lock of %s was released meanwhile.\n", id)
			}
			return nil
		})
	})
	return cmd
}

// heldBy gives the claims that would be broken.
func heldBy(ctx context.Context, s *chstate.Store, id, claim string) ([]chstate.LockInfo, error) {
	locks, err := s.LocksOf(ctx, id)
	return slices.DeleteFunc(locks, func(l chstate.LockInfo) bool {
		if claim != "" {
			return l.ClaimID != claim
		}
		return l.Waiting
	}), err
}

// holders names those who hold the claims.
func holders(locks []chstate.LockInfo) string {
	names := make([]string, len(locks))
	for i, l := range locks {
		line := lockLineOf(l)
		names[i] = line.who()
	}
	return strings.Join(names, " and ")
}

// nothingHeld says so, and where the lock may be that was meant.
func (a *app) nothingHeld(ctx context.Context, s *chstate.Store, id string) error {
	fmt.Fprintf(a.stderr, "Nobody holds the lock of %s.\n", id)
	runs, err := heldBy(ctx, s, chstate.RunKey(id), "")
	if err == nil && len(runs) > 0 {
		fmt.Fprintf(a.stderr, "A whole run of it is locked by %s; break that with: %s\n", holders(runs), runs[0].ReleaseCommand())
	}
	return err
}
