package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// chooseLogin settles which of password, password_file and access_token
// counts: the one from the stronger source. Two from one source are an error,
// since nobody can tell which was meant.
func (r *resolution) chooseLogin() error {
	var best string
	for _, name := range []string{"password", "password_file", "access_token"} {
		f, ok := r.given[name]
		switch {
		case !ok:
		case best == "" || f.level > r.given[best].level:
			best = name
		case f.level == r.given[best].level:
			s, _ := find(name)
			return s.failure(&badValue{"and state_backend.clickhouse." + best + " are both set", "keep one of them"}, f.from)
		}
	}
	o := &r.options
	if best != "access_token" {
		o.AccessToken = ""
	}
	if best != "password" {
		o.Password = ""
	}
	for _, name := range []string{"password", "password_file", "access_token"} {
		if name != best {
			delete(r.given, name)
		}
	}
	if best != "password_file" {
		return nil
	}
	f := r.given[best]
	s, _ := find(best)
	password, bad := readPassword(f.text)
	if bad != nil {
		return s.failure(bad, f.from)
	}
	r.warnIfReadable(f.text, "a password")
	o.Password = password
	r.given["password"] = found{text: password, from: "password_file", level: f.level}
	return nil
}

// readPassword gives the one line of a file.
func readPassword(name string) (string, *badValue) {
	const longest = 64 << 10
	trouble := func(what string) *badValue {
		return &badValue{fmt.Sprintf("names %s, %s", quote(name), what), "write the password into it, on one line"}
	}
	f, err := os.Open(name)
	if err != nil {
		return "", trouble("which cannot be read: " + cause(err))
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err != nil {
		return "", trouble("which cannot be read: " + cause(err))
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	switch {
	case len(content) > longest:
		return "", trouble("which is too long for a password")
	case text == "":
		return "", trouble("which is empty")
	case strings.ContainsAny(text, "\r\n"):
		return "", trouble("which has more than one line")
	}
	return text, nil
}

// cause is an error without the path that the message has already.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
