// Package datadir takes hold of the folder that an engine keeps its data in.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	lockName   = "chstate-engine.lock"
	configName = "chstate-engine.xml"
)

// Dir is a data folder that belongs to this process until it is closed.
type Dir struct {
	path string
	lock *os.File
}

// InUseError says that another process has the folder.
type InUseError struct {
	Path string
	PID  int // 0 where it is not known
}

func (e *InUseError) Error() string {
	holder := "another chstate-engine"
	if e.PID > 0 {
		holder = fmt.Sprintf("another chstate-engine, process %d", e.PID)
	}
	return fmt.Sprintf("the data folder %s is in use by %s; stop that one or name another folder with --data", e.Path, holder)
}

// Take makes the folder if it is missing and locks it. The lock goes with the
// process, however that ends. A folder in use is an *InUseError.
func Take(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer lock.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot lock the data folder %s: %w", path, err)
		}
		text, _ := io.ReadAll(io.LimitReader(lock, 32))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return nil, &InUseError{Path: path, PID: pid}
	}
	if err := errors.Join(lock.Truncate(0), writeAt(lock, fmt.Sprintf("%d\n", os.Getpid()))); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("cannot write the data folder's lock: %w", err)
	}
	return &Dir{path: path, lock: lock}, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// Path is the folder's absolute path.
func (d *Dir) Path() string { return d.path }

// Close gives the folder back. The lock file stays: removing it would let two
// processes hold locks on different files of that name.
func (d *Dir) Close() error { return d.lock.Close() }

// LayOut makes the folder for the tables' definitions. An engine that does not
// find it when it starts never starts the task that drops tables, and a DROP
// TABLE … SYNC would hang for ever.
func (d *Dir) LayOut() error {
	if err := os.MkdirAll(filepath.Join(d.path, "metadata"), 0o750); err != nil {
		return fmt.Errorf("cannot lay out the data folder: %w", err)
	}
	return nil
}

// ConfigFile writes an empty configuration and returns its path. Without one,
// libchdb takes a config.xml that happens to lie in the working folder.
func (d *Dir) ConfigFile() (string, error) {
	path := filepath.Join(d.path, configName)
	return path, os.WriteFile(path, []byte("<clickhouse></clickhouse>\n"), 0o644)
}
