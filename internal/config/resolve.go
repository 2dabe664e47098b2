package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/chstate/chstate"
)

// Inputs are where settings may come from.
type Inputs struct {
	// Flags are the flags that were given, by the name of their setting.
	Flags map[string]string
	// Env is the environment, as os.Environ gives it.
	Env []string
	// Dir is where the search for meltano.yml begins; "" for the working directory.
	Dir string
	// Project is the folder of a Meltano project, in place of the search (--project).
	Project string
}

// Resolved is what the settings come to.
type Resolved struct {
	// Options lack Command, Version and Logger, which are the caller's.
	Options chstate.Options
	// Values has an entry for each setting, in the order of Settings, and then
	// one for each server setting of the URI.
	Values []Value
	// Notices are warnings for people, one line each.
	Notices []string
}

// Value is a setting as `chstate config` shows it.
type Value struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // "***" for a secret, "" where nothing is set
	Source string `json:"source"` // "--host", "MELTANO_… in the environment", ".env", "meltano.yml", "the URI", "default"
}

// ErrMissing is the cause of the error for a user or database that nothing
// names; Meltano has a class of its own for that.
var ErrMissing = errors.New("a required setting is missing")

// Resolve looks through all sources for the CLI. Its error is a *chstate.Error
// of kind ErrSettings that names the setting and where its value came from. When
// it is ErrMissing, what there is comes beside it: enough to show, or to print SQL with.
func Resolve(in Inputs) (*Resolved, error) {
	for name := range in.Flags {
		if _, ok := find(name); !ok {
			return nil, fmt.Errorf("config: flag for %q, which is no setting", name)
		}
	}
	environ := environMap(in.Env)
	p, err := openProject(in, environ)
	if err != nil {
		return nil, err
	}
	m := newMeltanoLayer(p, environ)
	r := &resolution{given: map[string]found{}}

	flags := flagLayer(in.Flags)
	uri, fromFlag, err := flags.get(uriSetting())
	if err != nil {
		return nil, err
	}
	if !fromFlag {
		if uri, _, err = m.get(uriSetting()); err != nil {
			return nil, err
		}
	}
	level := levelURI
	if fromFlag {
		level = levelFlag
	}
	u, err := r.takeURI(uri, level)
	if err != nil {
		return nil, err
	}
	layers := []layer{flags, m, u, lastResort{environ, p}}
	if fromFlag {
		layers = []layer{flags, u, m, lastResort{environ, p}}
	}
	if err := r.gather(layers); err != nil {
		return nil, err
	}
	r.strays(p, environ)
	if fromFlag && u.uri.Password != "" {
		r.notice("the password in --uri can be seen by every user of this machine: give it in MELTANO_STATE_BACKEND_URI or with --password-file")
	}
	return r.finish()
}

// FromAddon takes what the Meltano add-on passes on: the URI and the keyword
// arguments that Meltano made of its settings (nil for what is not set;
// numbers as int, float64 or json.Number; texts; booleans). Names that it does
// not know are Meltano's own business and passed over. Its error is a
// *chstate.Error of kind ErrSettings.
func FromAddon(uri string, kwargs map[string]any) (*Resolved, error) {
	if uri == "" {
		uri, _ = kwargs["uri"].(string)
	}
	r := &resolution{given: map[string]found{}}
	u, err := r.takeURI(found{text: uri, from: "Meltano"}, levelURI)
	if err != nil {
		return nil, err
	}
	if err := r.gather([]layer{addonLayer(kwargs), u}); err != nil {
		return nil, err
	}
	return r.finish()
}

func uriSetting() Setting { return table[0] }

// level ranks sources where two settings exclude each other: a password and a
// file that holds it may not both be given on one level; else the higher wins.
type level int

const (
	levelLastResort level = iota + 1
	levelURI
	levelMeltano
	levelFlag
)

// found is a setting's text with its origin.
type found struct {
	text  string
	from  string // for people: "--port", "meltano.yml"
	level level
	file  string // the file whose own text this is, "" when it came from elsewhere
}

// layer is one source. ok is false where it does not know the setting; an
// empty text is known, and means that nothing is set.
type layer interface {
	get(Setting) (f found, ok bool, err error)
}

type flagLayer map[string]string

func (l flagLayer) get(s Setting) (found, bool, error) {
	text, ok := l[s.Name]
	return found{text: text, from: "--" + strings.ReplaceAll(s.Name, "_", "-"), level: levelFlag}, ok, nil
}

// meltanoLayer answers as Meltano would in this project.
type meltanoLayer struct {
	*project
	environ   map[string]string
	variables map[string]string
	strict    bool
}

func newMeltanoLayer(p *project, environ map[string]string) *meltanoLayer {
	strict := p.plain("ff.strict_env_var_mode", "MELTANO_FF_STRICT_ENV_VAR_MODE", environ)
	return &meltanoLayer{p, environ, p.variables(environ),
		slices.Contains([]string{"true", "1", "yes", "on"}, strings.ToLower(strict))}
}

func (l *meltanoLayer) get(s Setting) (found, bool, error) {
	if v, ok := l.env[s.Env()]; ok { // Meltano lays it over the environment
		if v != nil {
			return found{*v, s.Env() + " in the env of " + meltanoYML, levelMeltano, l.path(meltanoYML)}, true, nil
		}
	} else if v, ok := l.environ[s.Env()]; ok {
		return found{text: v, from: s.Env() + " in the environment", level: levelMeltano}, true, nil
	}
	if v, ok := l.dotenv[s.Env()]; ok {
		return found{v, s.Env() + " in " + dotenvName, levelMeltano, l.path(dotenvName)}, true, nil
	}
	f := found{from: l.from[s.Key()], level: levelMeltano, file: l.path(l.from[s.Key()])}
	text, ok, bad := s.textOf(l.flat[s.Key()])
	if bad != nil {
		return found{}, false, s.failure(bad, f.from)
	}
	if !ok {
		return found{}, false, nil
	}
	expanded, missing := expand(text, l.variables, l.strict)
	if missing != "" {
		return found{}, false, s.failure(&badValue{"needs the variable " + missing + ", which is not set",
			"set it, or turn off ff.strict_env_var_mode"}, f.from)
	}
	if expanded == "" && text != "" {
		return found{}, false, nil
	}
	if expanded != text {
		f.file = ""
	}
	f.text = expanded
	return f, true, nil
}

// lastResort reads CLICKHOUSE_<NAME>.
type lastResort struct {
	environ map[string]string
	*project
}

func (l lastResort) get(s Setting) (found, bool, error) {
	name := s.lastResort()
	if name == "" {
		return found{}, false, nil
	}
	if v := l.environ[name]; v != "" {
		return found{text: v, from: name + " in the environment", level: levelLastResort}, true, nil
	}
	v, ok := l.dotenv[name]
	return found{v, name + " in " + dotenvName, levelLastResort, l.path(dotenvName)}, ok, nil
}

type addonLayer map[string]any

func (l addonLayer) get(s Setting) (found, bool, error) {
	text, ok, bad := s.textOf(l[s.Name])
	if bad != nil {
		return found{}, false, s.failure(bad, "Meltano")
	}
	return found{text: text, from: "Meltano", level: levelMeltano}, ok, nil
}

// uriLayer gives the URI's query parameters, then its parts.
type uriLayer struct {
	uri   URI
	level level
}

func (l uriLayer) get(s Setting) (found, bool, error) {
	if text, ok := l.uri.Params[s.Name]; ok && s.Param() != "" {
		return found{text: text, from: "the URI's parameter " + s.Name, level: l.level}, true, nil
	}
	f := found{from: "the URI", level: l.level}
	switch s.Name {
	case "host":
		f.text = l.uri.Host
	case "port":
		if l.uri.Port != 0 {
			f.text = fmt.Sprint(l.uri.Port)
		}
	case "user":
		f.text = l.uri.User
	case "password":
		f.text = l.uri.Password
	case "database":
		f.text = l.uri.Database
	}
	return f, f.text != "", nil
}

func (p *project) path(name string) string {
	if p.root == "" || name == "" {
		return ""
	}
	return filepath.Join(p.root, name)
}

// environMap keeps the last of two entries with one name, as a started process does.
func environMap(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, e := range env {
		name, v, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			continue
		}
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		m[name] = v
	}
	return m
}

// failure is the error about one setting's value.
func (s Setting) failure(bad *badValue, from string) error {
	return settingsError(&badValue{s.Key() + " " + bad.reason, bad.advice}, from, nil)
}
