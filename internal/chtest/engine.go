package chtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit = 60 * time.Second
	stopLimit  = 15 * time.Second
)

// Options say how an engine is started. The zero value will do.
type Options struct {
	Data            string   // folder; Start makes a temporary one when it is empty
	User, Password  string   // default "default", no password
	TLSCert, TLSKey string   // PEM files; with them the engine speaks TLS
	Listen          string   // "host:port"; default a free port on 127.0.0.1
	ConfigFile      string   // an engine configuration, for what needs a Keeper
	Env             []string // "NAME=value", on top of the test's own environment
}

// Engine is a local engine that a test has for itself.
type Engine struct {
	Server
	opts   Options
	cmd    *exec.Cmd
	exited chan struct{}
	stderr *tail
}

// Start starts an engine that ends with the test.
func Start(t testing.TB, o Options) *Engine {
	t.Helper()
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	e, err := Launch(o)
	if err != nil {
		t.Fatalf("chtest: %v", err)
	}
	t.Cleanup(e.End)
	return e
}

// Stop asks the engine to end (SIGTERM) and waits until it has.
func (e *Engine) Stop(t testing.TB) {
	t.Helper()
	e.End()
}

// Kill ends the engine at once (SIGKILL), as a crash would.
func (e *Engine) Kill(t testing.TB) {
	t.Helper()
	e.Crash()
}

// Crash is Kill for those who are no test.
func (e *Engine) Crash() {
	_ = e.cmd.Process.Kill()
	<-e.exited
}

// PID is the engine's process.
func (e *Engine) PID() int { return e.cmd.Process.Pid }

// Restart starts the engine again, after Stop or Kill, on the same data and
// the same port.
func (e *Engine) Restart(t testing.TB) {
	t.Helper()
	if err := e.Relaunch(); err != nil {
		t.Fatalf("chtest: restart: %v", err)
	}
}

// Relaunch is Restart for those who are no test.
func (e *Engine) Relaunch() error {
	o := e.opts
	o.Listen = e.hostPort()
	again, err := Launch(o)
	if err != nil {
		return err
	}
	e.cmd, e.exited, e.stderr, e.Server = again.cmd, again.exited, again.stderr, again.Server
	return nil
}

// End asks the engine to end, and ends it when it does not.
func (e *Engine) End() {
	select {
	case <-e.exited:
		return
	default:
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-e.exited:
	case <-time.After(stopLimit):
		_ = e.cmd.Process.Kill()
		<-e.exited
	}
}

// Launch is Start for those who are no test: o.Data must be set, and End be called.
func Launch(o Options) (*Engine, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	args := []string{"serve", "--data", o.Data, "--listen", o.Listen, "--parent-pid", strconv.Itoa(os.Getpid())}
	if o.User != "" {
		args = append(args, "--user", o.User)
	}
	if o.TLSCert != "" {
		args = append(args, "--tls-cert", o.TLSCert, "--tls-key", o.TLSKey)
	}
	if o.ConfigFile != "" {
		args = append(args, "--config-file", o.ConfigFile)
	}
	cmd := exec.Command(bin, args...)
	cmd.Env = append(append(os.Environ(), o.Env...), "CHSTATE_ENGINE_PASSWORD="+o.Password)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: o, cmd: cmd, exited: make(chan struct{}), stderr: &tail{}}
	cmd.Stderr = e.stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}

	lines := make(chan string, 1)
	go func() {
		// Reads to the end, so that the engine never blocks on a full pipe;
		// only then may Wait close it.
		r := bufio.NewScanner(stdout)
		for r.Scan() {
			if line := r.Text(); strings.HasPrefix(line, "ready ") {
				lines <- line
			}
		}
		_ = cmd.Wait()
		close(e.exited)
	}()
	select {
	case line := <-lines:
		if e.Server, err = parseReady(line, o); err != nil {
			e.End()
			return nil, err
		}
		return e, nil
	case <-e.exited:
		return nil, fmt.Errorf("the local engine ended before it was ready: %s", e.stderr)
	case <-time.After(startLimit):
		e.End()
		return nil, fmt.Errorf("the local engine was not ready after %s: %s", startLimit, e.stderr)
	}
}

// parseReady reads "ready http://HOST:PORT ClickHouse VERSION".
func parseReady(line string, o Options) (Server, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return Server{}, fmt.Errorf("the local engine said %q", line)
	}
	u, err := url.Parse(fields[1])
	if err != nil {
		return Server{}, fmt.Errorf("the local engine said %q: %w", line, err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return Server{}, fmt.Errorf("the local engine said %q: %w", line, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return Server{}, fmt.Errorf("the local engine said %q: %w", line, err)
	}
	s := Server{Host: host, Port: n, User: o.User, Password: o.Password, Secure: u.Scheme == "https"}
	if s.User == "" {
		s.User = "default"
	}
	return s, nil
}

// binary finds chstate-engine: CHSTATE_ENGINE, or bin/ of the project.
func binary() (string, error) {
	if p := os.Getenv("CHSTATE_ENGINE"); p != "" {
		return p, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		p := filepath.Join(dir, "bin", "chstate-engine")
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("bin/chstate-engine is missing and CH_TEST_URI is not set: run `make engine`")
		}
		dir = up
	}
}

// tail keeps the end of what the engine says on stderr.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 4096

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if extra := w.buf.Len() - tailSize; extra > 0 {
		w.buf.Next(extra)
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(w.buf.String())
}
