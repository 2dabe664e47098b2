package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/chstate/chstate/engine/internal/chdb"
	"github.com/chstate/chstate/engine/internal/datadir"
	"github.com/chstate/chstate/engine/internal/server"
)

// passwordVariable holds the account's password; a flag would show in ps.
const passwordVariable = "CHSTATE_ENGINE_PASSWORD"

// How long an end may take: requests get drainTime to finish, their statements
// are then told to stop, and at exitTime the process goes whatever still runs.
// ClickHouse makes a part visible in one rename, so that loses no acknowledged row.
const (
	drainTime = 2 * time.Second
	killTime  = time.Second
	exitTime  = 4 * time.Second
)

func serve(o options, stdout, stderr io.Writer) error {
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.logLevel}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.parentPID > 0 {
		go watchParent(ctx, o.parentPID, func() {
			cancel(fmt.Errorf("the process %d that this engine was started for is gone", o.parentPID))
		})
	}

	lib, err := loadLibrary()
	if err != nil {
		return err
	}
	dir, err := datadir.Take(o.data)
	if err != nil {
		return err
	}
	defer dir.Close()
	listener, scheme, err := listen(o)
	if err != nil {
		return err
	}
	defer listener.Close()

	args, err := engineArgs(dir, o.configFile)
	if err != nil {
		return err
	}
	if err := dir.LayOut(); err != nil {
		return err
	}
	engine, err := server.StartEngine(lib, log, args...)
	if err != nil {
		return fmt.Errorf("the engine does not start on %s: %w", dir.Path(), err)
	}
	front, err := server.New(engine, server.Account{User: o.user, Password: os.Getenv(passwordVariable)}, dir.Path(), log)
	if err != nil {
		engine.Close()
		return err
	}
	web := &http.Server{
		Handler:           front,
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	if _, err := fmt.Fprintf(stdout, "ready %s://%s ClickHouse %s\n", scheme, listener.Addr(), engine.Version); err != nil {
		cancel(fmt.Errorf("cannot say that it is ready: %w", err))
	}

	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("stopping", "why", context.Cause(ctx))
	}
	shutDown(web, front, engine, log)
	return err
}

// shutDown ends everything in order, and the process itself if that takes too long.
func shutDown(web *http.Server, front *server.Server, engine *server.Engine, log *slog.Logger) {
	watchdog := time.AfterFunc(exitTime, func() {
		log.Warn("something still runs; leaving without it")
		os.Exit(exitOK)
	})
	defer watchdog.Stop()
	if drain(web, drainTime) != nil {
		log.Info("telling running statements to stop")
		killed := make(chan error, 1)
		go func() { killed <- engine.KillAll() }()
		err := drain(web, killTime)
		select {
		case killErr := <-killed:
			err = errors.Join(err, killErr)
		default:
			err = errors.Join(err, errors.New("the engine is busy"))
		}
		if err != nil {
			log.Warn("statements still run; leaving without them", "error", err)
			os.Exit(exitOK)
		}
	}
	front.Close()
	engine.Close()
}

func drain(web *http.Server, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return web.Shutdown(ctx)
}

// listen opens the port before the engine starts, so that a taken one is known
// at once.
func listen(o options) (net.Listener, string, error) {
	var config *tls.Config
	if o.tlsCert != "" {
		certificate, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
		if err != nil {
			return nil, "", fmt.Errorf("cannot use --tls-cert %s with --tls-key %s: %w", o.tlsCert, o.tlsKey, err)
		}
		// HTTP/1.1 only, as ClickHouse itself.
		config = &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, "", fmt.Errorf("cannot listen on %s: another program does; name another port, or 0 for a free one, with --listen", o.listen)
		}
		return nil, "", fmt.Errorf("cannot listen on %s: %w", o.listen, err)
	}
	if config != nil {
		return tls.NewListener(listener, config), "https", nil
	}
	return listener, "http", nil
}

// engineArgs are libchdb's arguments.
func engineArgs(dir *datadir.Dir, configFile string) ([]string, error) {
	if configFile == "" {
		var err error
		if configFile, err = dir.ConfigFile(); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(configFile); err != nil {
		return nil, fmt.Errorf("cannot read --config-file: %w", err)
	}
	return []string{"--path=" + dir.Path(), "--config-file=" + configFile, "--progress=off"}, nil
}

func loadLibrary() (*chdb.Library, error) {
	path, err := chdb.Locate()
	if err != nil {
		return nil, err
	}
	return chdb.Load(path)
}
