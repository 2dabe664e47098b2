package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// project is a Meltano project's files, read as Meltano reads them. The zero
// value is no project: nothing is set in it.
type project struct {
	root   string
	dotenv map[string]string
	// files are meltano.yml and what its include_paths name, merged.
	flat map[string]any    // state_backend.clickhouse.host → what YAML made of it
	from map[string]string // the same keys → the file they stand in, for messages
	env  map[string]*string
}

const (
	meltanoYML   = "meltano.yml"
	dotenvName   = ".env"
	rootVariable = "MELTANO_PROJECT_ROOT"
)

// openProject reads the project that --project or MELTANO_PROJECT_ROOT names,
// or the one around dir, or none.
func openProject(in Inputs, environ map[string]string) (*project, error) {
	root, err := findRoot(in, environ)
	if err != nil || root == "" {
		return &project{}, err
	}
	p := &project{root: root}
	text, err := os.ReadFile(filepath.Join(root, dotenvName))
	switch {
	case err == nil:
		if !utf8.Valid(text) {
			return nil, fileError(filepath.Join(root, dotenvName), errors.New("it is not UTF-8"))
		}
		p.dotenv = parseDotenv(string(text), environ)
	case !errors.Is(err, fs.ErrNotExist) && !isDir(filepath.Join(root, dotenvName)):
		return nil, fileError(filepath.Join(root, dotenvName), err)
	}
	return p, p.readYAML()
}

func findRoot(in Inputs, environ map[string]string) (string, error) {
	named, by := in.Project, "--project"
	if named == "" {
		named, by = environ[rootVariable], rootVariable
	}
	if named != "" {
		if filepath.Base(named) == meltanoYML {
			named = filepath.Dir(named)
		}
		if !filepath.IsAbs(named) {
			named = filepath.Join(in.Dir, named)
		}
		root, err := filepath.Abs(named)
		if err != nil || !isFile(filepath.Join(root, meltanoYML)) {
			return "", settingsError(&badValue{
				fmt.Sprintf("there is no %s in %s", meltanoYML, named), "name the folder of a Meltano project"}, by, err)
		}
		return root, nil
	}
	dir, err := filepath.Abs(in.Dir)
	if err != nil {
		return "", fileError(in.Dir, err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, meltanoYML)); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
		}
		dir = parent
	}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func fileError(name string, err error) error {
	var pe *fs.PathError
	reason := err
	if errors.As(err, &pe) {
		reason = pe.Err
	}
	return settingsError(&badValue{
		fmt.Sprintf("%s cannot be read: %s", name, strings.TrimSuffix(reason.Error(), "\n")), "correct it, or its permissions"}, "", err)
}

// variables are what $NAME in meltano.yml sees: .env, under the environment,
// under what Meltano itself provides, under meltano.yml's env.
func (p *project) variables(environ map[string]string) map[string]string {
	if p.root == "" {
		return environ
	}
	all := make(map[string]string, len(environ)+len(p.dotenv))
	for name, v := range p.dotenv {
		all[name] = v
	}
	for name, v := range environ {
		all[name] = v
	}
	root := p.root
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	all[rootVariable] = root
	if all["MELTANO_SYS_DIR_ROOT"] == "" {
		all["MELTANO_SYS_DIR_ROOT"] = filepath.Join(root, ".meltano")
	}
	all["MELTANO_ENVIRONMENT"] = p.selectedEnvironment(environ)
	for name, v := range p.env {
		if v == nil {
			all[name] = "None" // how Meltano writes a null into a text
		} else {
			all[name] = *v
		}
	}
	return all
}

// selectedEnvironment is the Meltano environment that `meltano run` would use.
func (p *project) selectedEnvironment(environ map[string]string) string {
	const variable = "MELTANO_ENVIRONMENT"
	name, ok := environ[variable]
	if !ok {
		name = p.dotenv[variable]
	}
	if strings.EqualFold(name, "null") {
		return ""
	}
	if name == "" {
		name = p.plain("default_environment", "MELTANO_DEFAULT_ENVIRONMENT", environ)
	}
	return name
}

// plain gives one of Meltano's own settings as text, without expansion.
func (p *project) plain(key, variable string, environ map[string]string) string {
	if v, ok := p.env[variable]; ok && v != nil {
		return *v
	}
	if v, ok := environ[variable]; ok {
		return v
	}
	if v, ok := p.dotenv[variable]; ok {
		return v
	}
	if v := p.flat[key]; v != nil {
		return fmt.Sprint(v)
	}
	return ""
}
