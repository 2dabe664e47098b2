package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chstate/chstate"
)

// The exit codes; docs/cli.md promises them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNoState     = 3
	exitLocked      = 4
	exitConnect     = 5
	exitRefused     = 6
	exitNotObtained = 75 // of lock run
	exitLost        = 76 // of lock run and lock hold
	exitInterrupted = 130
)

// usageError is a command line that cannot be meant.
type usageError struct{ reason string }

func (e usageError) Error() string { return e.reason }

// interrupted is what went on when Ctrl-C or SIGTERM came.
type interrupted struct{ err error }

func (e interrupted) Error() string { return "interrupted: " + e.err.Error() }
func (e interrupted) Unwrap() error { return e.err }

// errCalledOff takes the place of Go's "context canceled", which tells nobody anything.
var errCalledOff = errors.New("no state is half written, and no lock is kept")

// calledOff gives errCalledOff for what failed because its context ended, unless
// the library has more to tell of it.
func calledOff(err error) error {
	var told *chstate.Error
	if errors.Is(err, context.Canceled) && !errors.As(err, &told) {
		return errCalledOff
	}
	return err
}

// ended is an end with a code of its own; err is nil where nothing is left to say.
type ended struct {
	code int
	err  error
}

func (e ended) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e ended) Unwrap() error { return e.err }

// errDeclined: the person at the terminal did not say yes.
var errDeclined = errors.New("nothing was changed")

// fail prints the one line that says what went wrong and gives the exit code.
func (a *app) fail(cmd *cobra.Command, err error) int {
	msg := oneLine(err.Error())
	code := exitCode(err)
	if !a.started {
		// cobra's own errors: an unknown command or flag, a wrong number of arguments.
		code = exitUsage
		help := cmd.CommandPath()
		if cmd.Name() != "help" {
			help += " --help"
		}
		msg += fmt.Sprintf(" (see %s)", help)
	}
	if msg != "" {
		fmt.Fprintf(a.errors, "chstate: %s\n", msg)
	}
	return code
}

func exitCode(err error) int {
	var usage usageError
	var stop interrupted
	var own ended
	switch {
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &stop):
		return exitInterrupted
	case errors.As(err, &usage), errors.Is(err, chstate.ErrSettings):
		return exitUsage
	case errors.Is(err, chstate.ErrNoState):
		return exitNoState
	case errors.Is(err, chstate.ErrLocked):
		return exitLocked
	case errors.Is(err, chstate.ErrConnect):
		return exitConnect
	case errors.Is(err, chstate.ErrInvalid), errors.Is(err, chstate.ErrChanged):
		return exitRefused
	default:
		return exitFailed
	}
}

// oneLine joins the lines of a message: scripts and logs take a line for an error.
func oneLine(msg string) string {
	lines := strings.FieldsFunc(msg, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

// refused is input that was looked at and not sent.
func refused(format string, args ...any) error {
	return &chstate.Error{Kind: chstate.ErrInvalid, Reason: fmt.Sprintf(format, args...)}
}
