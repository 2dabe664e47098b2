package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/config"
	"github.com/chstate/chstate/internal/version"
)

// settingFlags are the flags that every command has: one for each setting that
// is no secret, and --project.
type settingFlags struct {
	set     *pflag.FlagSet
	project *string
}

func (f *settingFlags) register(root *cobra.Command) {
	f.set = root.PersistentFlags()
	f.project = f.set.String("project", "", "folder of the Meltano project to take settings from (default: the working directory or one above it)")
	for _, s := range config.Settings() {
		name := s.Flag()
		if name == "" {
			continue
		}
		f.set.String(name, "", s.Help)
		if s.Kind == config.Switch {
			f.set.Lookup(name).NoOptDefVal = "true"
		}
	}
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
}

// usageTemplate is cobra's, with one line in the place of some thirty flags
// that every command has: they would drown its own.
func usageTemplate(cobras string) string {
	const from, to = "{{if .HasAvailableInheritedFlags}}", "{{if .HasHelpSubCommands}}"
	i, j := strings.Index(cobras, from), strings.Index(cobras, to)
	own := cobras[:i] + "{{if .HasParent}}\n\nEvery setting is a flag, too (--uri, --host, --project, …): see chstate help settings{{end}}" + cobras[j:]
	return strings.Replace(own, "{{.LocalFlags.FlagUsages", "{{.LocalNonPersistentFlags.FlagUsages", 1)
}

// settingsTopic is the help text that lists the settings.
func settingsTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString(`Where the state is kept and how it is locked follows from these, strongest first: flags;
the environment; the Meltano project's .env; state_backend in its meltano.yml; the URI.
"chstate config" shows each value in force and where it came from.

`)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  --project\tfolder of the Meltano project\n")
	for _, s := range config.Settings() {
		flag := "(no flag: a secret)"
		if s.Flag() != "" {
			flag = "--" + s.Flag()
		}
		fmt.Fprintf(w, "  %s\t%s\n  \t%s\n", flag, s.Help, s.Env())
	}
	_ = w.Flush() // to a strings.Builder, which takes everything
	return &cobra.Command{Use: "settings", Short: "What can be set, and by which names", Long: b.String()}
}

// given are the settings that stand on the command line, by name.
func (f *settingFlags) given() map[string]string {
	given := make(map[string]string)
	for _, s := range config.Settings() {
		if name := s.Flag(); name != "" && f.set.Changed(name) {
			given[s.Name] = f.set.Lookup(name).Value.String()
		}
	}
	return given
}

// resolve finds the settings of this run.
func (a *app) resolve() (*config.Resolved, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("cannot tell the working directory: %w", err)
	}
	return config.Resolve(config.Inputs{
		Flags:   a.settings.given(),
		Env:     a.env,
		Dir:     dir,
		Project: *a.settings.project,
	})
}

// withStore opens the store that the settings name, for one command, and
// closes it again. what says to others what holds a lock: the command's words,
// without state text and settings.
func (a *app) withStore(ctx context.Context, what string, do func(*chstate.Store) error) error {
	r, err := a.resolve()
	if err != nil {
		return err
	}
	o := r.Options
	o.Command = "chstate " + what
	o.Version = "chstate " + version.Version
	o.Logger = newNotices(a.stderr)
	for _, notice := range r.Notices {
		o.Logger.Warn(notice)
	}
	s, err := chstate.Open(ctx, o)
	if err != nil {
		return err
	}
	err = do(s)
	if closing := s.Close(); err == nil && closing != nil {
		// The work is done; a lock that was not given back ends with its lease.
		o.Logger.Warn(closing.Error())
	}
	return err
}
