package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

func (a *app) lockCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Show, break and hold locks; run a command under one",
		Long: `A state has two locks: its own, held for each change of it, and that of a whole run,
which "chstate lock run" holds. The latter goes by the id with "run:" before it.`,
	}
	cmd.AddCommand(a.lockListCommand(), a.lockShowCommand(), a.lockReleaseCommand(), a.lockRunCommand(), a.lockHoldCommand())
	return cmd
}

// lockLine is one claim as it is printed.
type lockLine struct {
	ID         string    `json:"id"` // of the state, or run: and the id
	ClaimID    string    `json:"lock_id"`
	Waiting    bool      `json:"waiting"`
	Host       string    `json:"host,omitempty"`
	PID        int       `json:"pid,omitempty"`
	User       string    `json:"user,omitempty"`
	Command    string    `json:"command,omitempty"`
	Version    string    `json:"tool_version,omitempty"`
	Since      time.Time `json:"since"`
	AgeSeconds int64     `json:"age_seconds"`
	Seen       time.Time `json:"last_heartbeat"`
	FreeAt     time.Time `json:"frees_itself_at"`
	Release    string    `json:"release"`

	age, seen, free time.Duration // ago, ago, and from now
}

func lockLineOf(l chstate.LockInfo) lockLine {
	line := lockLine{
		ID: l.ID, ClaimID: l.ClaimID, Waiting: l.Waiting, Host: l.Holder.Host, PID: l.Holder.PID, User: l.Holder.User,
		Command: l.Holder.Command, Version: l.Holder.ToolVersion, Since: l.Since, Seen: l.Seen, FreeAt: l.FreeAt,
		Release: l.ReleaseCommand(), age: max(l.Now.Sub(l.Since), 0), seen: max(l.Now.Sub(l.Seen), 0), free: l.FreeAt.Sub(l.Now),
	}
	line.AgeSeconds = int64(line.age / time.Second)
	return line
}

// who names a holder in a few words; "" for nobody.
func (l *lockLine) who() string {
	if l == nil {
		return ""
	}
	who := "a process of the older plugin"
	if l.Host != "" || l.PID != 0 {
		who = fmt.Sprintf("pid %d on %s", l.PID, l.Host)
	}
	if l.Command != "" {
		who += ": " + l.Command
	}
	return who
}

// doing says whether a claim is held or waits.
func (l *lockLine) doing() string {
	if l.Waiting {
		return "waits"
	}
	return "holds"
}

// holdersByID gives who holds which state: its lock, or else that of its whole run.
func holdersByID(ctx context.Context, s *chstate.Store) (map[string]*lockLine, error) {
	locks, err := s.Locks(ctx)
	if err != nil {
		return nil, err
	}
	run := chstate.RunKey("")
	out := map[string]*lockLine{}
	for _, runs := range []bool{true, false} { // the second takes the first one's place
		for _, l := range locks {
			id, ofRun := strings.CutPrefix(l.ID, run)
			if l.Waiting || ofRun != runs {
				continue
			}
			line := lockLineOf(l)
			out[id] = &line
		}
	}
	return out, nil
}

func (a *app) lockListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List who holds locks and who waits for them",
		Args:  takes(0),
	}
	format := choiceFlag(cmd, "format", "text: a table; json: a list", "text", "json")
	cmd.RunE = a.work(func(ctx context.Context, _ []string) error {
		return a.withStore(ctx, "lock list", func(s *chstate.Store) error {
			locks, err := s.Locks(ctx)
			if err != nil {
				return err
			}
			lines := []lockLine{}
			rows := [][]string{}
			for _, l := range locks {
				line := lockLineOf(l)
				lines = append(lines, line)
				rows = append(rows, []string{
					line.ID, line.doing(), line.Host, strconv.Itoa(line.PID), line.User, line.Command,
					ageText(line.age), "in " + ageText(line.free), line.ClaimID,
				})
			}
			if *format == "json" {
				return writeJSON(a.stdout, lines)
			}
			if len(lines) == 0 {
				fmt.Fprintln(a.stderr, "Nothing is locked.")
				return nil
			}
			return writeTable(a.stdout, []string{"ID", "STATUS", "HOST", "PID", "USER", "COMMAND", "SINCE", "FREES ITSELF", "LOCK ID"}, rows)
		})
	})
	return cmd
}

func (a *app) lockShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show STATE_ID",
		Short: "Tell all about a state's locks",
		Long: `Tell who holds a state's lock and that of its whole run, and who waits for them: since
when, when they were last heard of, when the lock frees itself, and the command that
breaks it. It ends with code 3 when neither is held.`,
		Args: takes(1, "a state id"),
	}
	format := choiceFlag(cmd, "format", "text; json: a list", "text", "json")
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		return a.withStore(ctx, "lock show "+args[0], func(s *chstate.Store) error {
			lines := []lockLine{}
			for _, key := range []string{args[0], chstate.RunKey(args[0])} {
				locks, err := s.LocksOf(ctx, key)
				if err != nil {
					return err
				}
				for _, l := range locks {
					lines = append(lines, lockLineOf(l))
				}
			}
			if *format == "json" {
				if err := writeJSON(a.stdout, lines); err != nil {
					return err
				}
			} else {
				for i, l := range lines {
					if i > 0 {
						fmt.Fprintln(a.stdout)
					}
					l.print(a)
				}
			}
			if len(lines) == 0 {
				return noVersion("nobody holds a lock of state %q", args[0])
			}
			return nil
		})
	})
	return cmd
}

// print writes all that is known of a claim, a line for each matter.
func (l *lockLine) print(a *app) {
	what := "state " + l.ID
	if id, ok := strings.CutPrefix(l.ID, chstate.RunKey("")); ok {
		what = "a whole run of " + id
	}
	fmt.Fprintf(a.stdout, "%s is %s\n", what, map[bool]string{false: "locked", true: "waited for"}[l.Waiting])
	line := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			fmt.Fprintf(a.stdout, "  %-16s%s\n", name, text)
		}
	}
	if l.Host == "" && l.PID == 0 {
		line("by", "a process of the older plugin, which leaves no name")
	} else {
		line("host", "%s", l.Host)
		line("pid", "%d", l.PID)
		line("user", "%s", l.User)
		line("command", "%s", l.Command)
		line("version", "%s", l.Version)
	}
	line("since", "%s (%s ago)", versionText(l.Since), ageText(l.age))
	line("last heard of", "%s (%s ago)", versionText(l.Seen), ageText(l.seen))
	line("frees itself", "%s (in %s), unless renewed", versionText(l.FreeAt), ageText(l.free))
	line("lock id", "%s", l.ClaimID)
	if !l.Waiting {
		line("break it with", "%s", l.Release)
	}
}
