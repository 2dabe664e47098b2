package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Kind sorts failures by what a person can do about them.
type Kind int

const (
	// Server: the server refused a statement for a reason that has no kind of its own.
	Server Kind = iota
	// Connect: the server cannot be reached, or something else answers.
	Connect
	// Login: the server does not accept user and password, or the certificate.
	Login
	// Denied: the user lacks a grant; the advice names it.
	Denied
	// ReadOnly: the user, or the server, takes no writes or no settings.
	ReadOnly
	// Schema: a table is missing, or is not what it must be.
	Schema
	// Version: the server is too old.
	Version
	// Busy: a failure that passes by itself has not, within the time for retrying.
	Busy
	// Invalid: refused before anything was sent.
	Invalid
)

// String gives the kind's name, for logs.
func (k Kind) String() string {
	return [...]string{"server", "connect", "login", "denied", "readonly", "schema", "version", "busy", "invalid"}[k]
}

// Error is a failure with the advice that belongs to it. It never holds a secret.
type Error struct {
	Kind   Kind
	Code   int    // ClickHouse's error code, 0 when it was not the server's
	Target string // "http://ch:8123 (database analytics)"
	Reason string // what went wrong; names the server's code and its name
	Advice string // what to do next
	Err    error  // the cause, may be nil

	passing bool // passes by itself: worth repeating
	cut     bool // the connection was cut: repeat at once
}

// Error gives the whole message on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Target != "" {
		b.WriteString(e.Target)
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	if e.Advice != "" {
		b.WriteString(" — ")
		b.WriteString(e.Advice)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// explained gives the Error in err, nil when there is none.
func explained(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// interrupted is the failure of a request whose context ended.
func (db *DB) interrupted(ctx context.Context) *Error {
	e := &Error{Kind: Busy, Target: db.Target(), Err: context.Cause(ctx)}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Reason = "no answer in time"
		e.Advice = "see whether the server is overloaded or a network device holds the connection"
		return e
	}
	e.Reason = fmt.Sprintf("given up: %v", context.Cause(ctx))
	return e
}

// oneLine makes a server's message fit on one line of bounded length.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 400
	if len(s) > most {
		cut := most
		for cut > 0 && s[cut]&0xC0 == 0x80 {
			cut--
		}
		s = s[:cut] + "…"
	}
	return s
}
