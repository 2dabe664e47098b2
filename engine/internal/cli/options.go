package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
)

// options are serve's flags.
type options struct {
	data, listen, user string
	tlsCert, tlsKey    string
	configFile         string
	parentPID          int
	logLevel           slog.Level
}

func parseServe(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // Run reports the error, once
	flags.StringVar(&o.data, "data", "", "")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8123", "")
	flags.StringVar(&o.user, "user", "default", "")
	flags.StringVar(&o.tlsCert, "tls-cert", "", "")
	flags.StringVar(&o.tlsKey, "tls-key", "", "")
	flags.StringVar(&o.configFile, "config-file", "", "")
	flags.IntVar(&o.parentPID, "parent-pid", 0, "")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, usageError{err}
	}
	return o, o.check(flags.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return usageError{fmt.Errorf("serve takes no argument %q", rest[0])}
	case o.data == "":
		return usageError{errors.New("--data is missing: the folder that holds the data")}
	case o.user == "":
		return usageError{errors.New("--user is empty")}
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return usageError{errors.New("--tls-cert and --tls-key go together")}
	case o.parentPID < 0:
		return usageError{fmt.Errorf("--parent-pid %d is no process", o.parentPID)}
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return usageError{fmt.Errorf("--listen %s is not HOST:PORT: %w", o.listen, err)}
	}
	return nil
}
