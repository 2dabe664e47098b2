package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// globProject gives the files in a project that one of Meltano's include_paths
// matches, in order of their names. Between slashes * ? and [ ] match as in a
// shell, hidden files too; ** stands for any number of folders.
func globProject(root, pattern string) ([]string, error) {
	pattern = filepath.ToSlash(pattern)
	if pattern == "" || strings.HasPrefix(pattern, "/") || filepath.IsAbs(pattern) {
		return nil, errors.New("it is not relative to the project")
	}
	var parts []string
	for part := range strings.SplitSeq(pattern, "/") {
		switch part {
		case "", ".":
		case "..":
			return nil, errors.New("it leaves the project")
		default:
			parts = append(parts, part)
		}
	}
	found := []string{}
	if err := globIn(root, parts, &found); err != nil {
		return nil, err
	}
	slices.Sort(found)
	found = slices.Compact(found)
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	for _, name := range found {
		target, err := filepath.EvalSymlinks(name)
		if err != nil {
			return nil, err
		}
		if isDir(target) {
			return nil, errors.New("it matches a folder")
		}
		if rel, err := filepath.Rel(real, target); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return nil, errors.New("it leads out of the project")
		}
	}
	return found, nil
}

func globIn(dir string, parts []string, found *[]string) error {
	if len(parts) == 0 {
		*found = append(*found, dir)
		return nil
	}
	if parts[0] == "**" {
		if err := globIn(dir, parts[1:], found); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrPermission) { // as Python: what cannot be looked into matches nothing
		return err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if parts[0] == "**" {
			if e.IsDir() { // not through links, which may lead in circles
				if err := globIn(name, parts, found); err != nil {
					return err
				}
			}
			continue
		}
		ok, err := filepath.Match(parts[0], e.Name())
		if err != nil {
			return errors.New("it is not a pattern")
		}
		if ok && (len(parts) == 1 || isDir(name)) {
			if err := globIn(name, parts[1:], found); err != nil {
				return err
			}
		}
	}
	return nil
}
