// Package cli is chstate-engine's command line.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/chstate/chstate/engine/internal/chdb"
)

const usage = `chstate-engine is a local ClickHouse: a real engine (libchdb) behind ClickHouse's
HTTP interface, for trying chstate and for tests. It is no server for production.

Usage:
  chstate-engine serve --data DIR [flags]   serve the data in DIR until SIGTERM or Ctrl-C
  chstate-engine version                    print the versions of this program and of the engine
  chstate-engine help                       print this text

Flags of serve:
  --data DIR          the folder that holds the data; made if it is missing (required)
  --listen HOST:PORT  where to listen (default 127.0.0.1:8123); port 0 takes a free one
  --user NAME         the one account's name (default "default"); its password comes from the
                      environment variable CHSTATE_ENGINE_PASSWORD and is empty without it
  --tls-cert FILE     serve HTTPS with this certificate (PEM) …
  --tls-key FILE      … and its key
  --config-file FILE  a ClickHouse configuration for the engine (ZooKeeper, KeeperMap and so on)
  --parent-pid PID    stop when the process PID is gone, so that a killed test leaves nothing behind
  --log-level LEVEL   debug, info, warn or error (default info), on standard error

When it is ready, it prints one line on standard output:
  ready http://HOST:PORT ClickHouse VERSION

The engine is looked for where CHDB_LIB_PATH says, else in
${XDG_CACHE_HOME:-~/.cache}/chstate/libchdb/` + chdb.Version + `/, where 'make engine' puts it.
`

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a mistake on the command line.
type usageError struct{ error }

// Run carries out the command line and returns the exit code.
func Run(args []string, stdout, stderr io.Writer) int {
	err := run(args, stdout, stderr)
	var mistake usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case errors.As(err, &mistake):
		fmt.Fprintf(stderr, "chstate-engine: %v; see chstate-engine --help\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "chstate-engine: %v\n", err)
		return exitFailed
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return usageError{errors.New("no command given")}
	}
	switch args[0] {
	case "serve":
		options, err := parseServe(args[1:])
		if err != nil {
			return err
		}
		return serve(options, stdout, stderr)
	case "version", "--version":
		return printVersion(stdout)
	case "help", "--help", "-help", "-h":
		return flag.ErrHelp
	}
	return usageError{fmt.Errorf("unknown command %q", args[0])}
}
