package chstate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/chstate/chstate/lock"
)

// The kinds of failure; test for them with errors.Is. Each error's own text
// says what was tried, on which host, what the server said and what to do next.
var (
	// ErrNoState: the state id has no state.
	ErrNoState = errors.New("no such state")
	// ErrLocked: somebody else holds the state id's lock; the error is a *LockedError.
	ErrLocked = errors.New("state is locked")
	// ErrLockLost: the hold ended before the write was known to be made within
	// it. A later holder may not have seen the write.
	ErrLockLost = lock.ErrLost
	// ErrCorrupt: what is stored under an id is not a state, such as a JSON string where an object must be.
	ErrCorrupt = errors.New("stored state is not usable")
	// ErrClosed: the store was closed, or the Hold released, before the call or while it went on.
	ErrClosed = errors.New("store is closed")
	// ErrConnect: the server cannot be reached, or the login was refused.
	ErrConnect = errors.New("cannot connect")
	// ErrInvalid: refused input, such as a state that is not a JSON object; nothing was sent.
	ErrInvalid = errors.New("invalid input")
	// ErrSettings: a setting has a value that cannot be used.
	ErrSettings = errors.New("invalid setting")
	// ErrServer: the server refused a statement, or its tables are not what they must be.
	ErrServer = errors.New("server error")
)

// Error is a failure with the advice that belongs to it.
type Error struct {
	Kind   error  // one of the Err… values
	Op     string // what was tried: "read state \"a\""
	Target string // where: "http://ch:8123 (database analytics)"; never with secrets
	Reason string // what went wrong, the server's words included
	Code   int    // ClickHouse's error code, 0 when it was not the server's
	Advice string // what to do next
	Err    error  // the cause, may be nil
}

// Error gives the whole message on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		fmt.Fprintf(&b, "cannot %s", e.Op)
		if e.Target != "" {
			fmt.Fprintf(&b, " on %s", e.Target)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	if e.Advice != "" {
		b.WriteString(" — ")
		b.WriteString(e.Advice)
	}
	return b.String()
}

// Unwrap gives kind and cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// LockedError says who holds the lock that was waited for.
type LockedError struct {
	ID      string        // the state id
	ClaimID string        // the claim, for `chstate lock release ID --id …`
	Holder  lock.Holder   // zero for a claim of the older Python plugin
	Since   time.Time     // since when it is held, by the holder's clock
	Seen    time.Time     // its last sign of life, by the server's clock; zero when the holder is this process
	FreeAt  time.Time     // when it frees itself unless renewed, by the server's clock; zero when the holder is this process
	Now     time.Time     // the server's clock when this was read; zero when the holder is this process
	Waited  time.Duration // how long was waited for it
}

// Error names the state id, the holder, and the way out, on one line.
func (e *LockedError) Error() string {
	if e.FreeAt.IsZero() {
		return fmt.Sprintf("%s is locked by another call of this process (%s), since %s; waited %s — "+
			"let that end first, or raise lock_wait_seconds", lockName(e.ID), e.who(), stamp(e.Since), e.Waited.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("%s is locked by %s, since %s, last heard of %s; waited %s. It frees itself at %s unless renewed — "+
		"wait for that run to end, raise lock_wait_seconds, or, when you are sure that it is dead, break it: %s",
		lockName(e.ID), e.who(), since(e.Since, e.Now), since(e.Seen, e.Now), e.Waited.Round(100*time.Millisecond), stamp(e.FreeAt),
		releaseCommand(e.ID, e.ClaimID))
}

// releaseCommand is what breaks one claim, as a POSIX shell takes it.
func releaseCommand(key, claimID string) string {
	var id string
	if claimID != "" {
		id = " --id '" + claimID + "'" // shells read "!" otherwise
	}
	if strings.HasPrefix(key, "-") {
		return "chstate lock release" + id + " -- " + shellQuote(key)
	}
	return "chstate lock release " + shellQuote(key) + id
}

// commandOn is a command about a state, as a POSIX shell takes it.
func commandOn(command, id string) string {
	if strings.HasPrefix(id, "-") {
		command += " --"
	}
	return command + " " + shellQuote(id)
}

// shellQuote quotes what needs it.
func shellQuote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[\w:@%+=,./-]+$`)

// since gives a moment and, where the present is known, how long ago it was.
func since(t, now time.Time) string {
	if now.IsZero() {
		return stamp(t)
	}
	return fmt.Sprintf("%s (%s ago)", stamp(t), max(now.Sub(t), 0).Round(time.Second))
}

func (e *LockedError) who() string {
	h := e.Holder
	if h.Host == "" && h.PID == 0 {
		return "a process of the older plugin, which leaves no name"
	}
	who := fmt.Sprintf("pid %d on %s", h.PID, h.Host)
	if h.User != "" {
		who += " (user " + h.User + ")"
	}
	if h.Command != "" {
		who += fmt.Sprintf(", running %q", h.Command)
	}
	if h.ToolVersion != "" {
		who += ", chstate " + h.ToolVersion
	}
	return who
}

// Unwrap makes errors.Is(err, ErrLocked) hold.
func (e *LockedError) Unwrap() error { return ErrLocked }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func isNoState(err error) bool { return errors.Is(err, ErrNoState) }
