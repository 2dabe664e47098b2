package cli

import "fmt"

// The exit codes; docs/cli.md promises them.
const (
	exitDone   = 0
	exitFailed = 1
)

// fail prints the one line that says what went wrong and gives the exit code.
func (a *app) fail(err error) int {
	fmt.Fprintf(a.stderr, "chstate: %v\n", err)
	return exitFailed
}
