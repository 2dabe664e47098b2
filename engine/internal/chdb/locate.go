package chdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Version is the libchdb release this program is built and tested against. It
// names the folder in the cache; fetch-libchdb.sh pins the same one.
const Version = "26.5.3"

// PathVariable is the environment variable that names a libchdb to use instead
// of the cached one.
const PathVariable = "CHDB_LIB_PATH"

// Locate returns the path of the libchdb to load: what CHDB_LIB_PATH says, else
// the one that `make engine` put into the user's cache folder.
func Locate() (string, error) {
	if path := os.Getenv(PathVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s names %s, which cannot be read (%w); unset it to use the library that 'make engine' fetches", PathVariable, path, reason(err))
		}
		return path, nil
	}
	path, err := cachedPath()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("libchdb %s is not at %s (%w); run 'make engine' to fetch it, or name one with %s", Version, path, reason(err), PathVariable)
	}
	return path, nil
}

func cachedPath() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no cache folder to look for libchdb in (%w); set %s or XDG_CACHE_HOME", err, PathVariable)
		}
		cache = filepath.Join(home, ".cache")
	}
	name := "libchdb.so"
	if runtime.GOOS == "darwin" {
		name = "libchdb.dylib"
	}
	return filepath.Join(cache, "chstate", "libchdb", Version, name), nil
}

// reason drops the path that a *fs.PathError repeats.
func reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
