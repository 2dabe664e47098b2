package server

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// spool holds an INSERT's data in a file for INSERT … FROM INFILE, the engine's
// one way to take binary data: data in the statement's text is cut at a newline.
// The files live in the data folder and are never synced, so small ones stay in
// the page cache for the few milliseconds they exist.
type spool struct{ dir string }

// newSpool empties dir of what an earlier process left.
func newSpool(dir string) (*spool, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return &spool{dir}, os.MkdirAll(dir, 0o700)
}

// save writes data into a file and returns its path and a function that removes it.
func (s *spool) save(data io.Reader) (path string, remove func(), err error) {
	f, err := os.CreateTemp(s.dir, "body")
	if err != nil {
		return "", nil, fmt.Errorf("cannot keep the request's data: %w", err)
	}
	path = f.Name()
	remove = func() { _ = os.Remove(path) }
	_, err = io.Copy(f, data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// temporary opens a file that has no name any more and goes when it is closed.
func (s *spool) temporary() (*os.File, error) {
	f, err := os.CreateTemp(s.dir, "result")
	if err != nil {
		return nil, fmt.Errorf("cannot keep the result: %w", err)
	}
	return f, os.Remove(f.Name())
}

func spoolDir(data string) string { return filepath.Join(data, "chstate-engine.spool") }

// quote writes a string literal.
func quote(s string) string {
	return "'" + literalEscapes.Replace(s) + "'"
}

var literalEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`, "\n", `\n`, "\t", `\t`, "\r", `\r`)

// quoteName writes an identifier.
func quoteName(s string) string {
	return "`" + nameEscapes.Replace(s) + "`"
}

var nameEscapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "\x00", `\0`, "\n", `\n`, "\t", `\t`, "\r", `\r`)
