package cli

import (
	"context"
	"fmt"
	"os"

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
	root.SetUsageFunc(usage)
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
	return a.withStoreAs(ctx, what, func(*chstate.Options) {}, do)
}

// withStoreAs is withStore with some options of the command's own.
func (a *app) withStoreAs(ctx context.Context, what string, own func(*chstate.Options), do func(*chstate.Store) error) error {
	r, err := a.resolve()
	if err != nil {
		return err
	}
	o := r.Options
	o.Command = "chstate " + what
	o.Version = version.Version
	o.Logger = newNotices(a.stderr, a.verbose)
	own(&o)
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
