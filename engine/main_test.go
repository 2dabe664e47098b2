package main_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// program is the chstate-engine under test, built once.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if _, err := chdb.Locate(); err != nil {
		fmt.Fprintln(os.Stderr, "these tests need the real engine:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "chstate-engine-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "chstate-engine")
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	defer stopShared()
	return m.Run()
}

// engine is a running chstate-engine.
type engine struct {
	cmd    *exec.Cmd
	url    string // http://127.0.0.1:PORT
	ready  string // the line it printed
	stderr *lockedBuffer
	exited chan struct{}
}

func (e *engine) addr() string {
	_, addr, _ := strings.Cut(e.url, "://")
	return addr
}

// launch starts the program and waits until it is ready.
func launch(data string, env []string, args ...string) (*engine, error) {
	args = append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--parent-pid", fmt.Sprint(os.Getpid())}, args...)
	e := &engine{cmd: exec.Command(program, args...), stderr: &lockedBuffer{}, exited: make(chan struct{})}
	e.cmd.Env = append(os.Environ(), env...)
	e.cmd.Stderr = e.stderr
	stdout, err := e.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := e.cmd.Start(); err != nil {
		return nil, err
	}
	line := make(chan string, 1)
	go func() {
		r := bufio.NewReader(stdout)
		text, _ := r.ReadString('\n')
		line <- text
		_, _ = io.Copy(io.Discard, r)
		_ = e.cmd.Wait()
		close(e.exited)
	}()
	select {
	case e.ready = <-line:
	case <-time.After(30 * time.Second):
	}
	fields := strings.Fields(e.ready)
	if len(fields) != 4 || fields[0] != "ready" {
		e.kill()
		return nil, fmt.Errorf("no ready line but %q; standard error: %s", e.ready, e.stderr)
	}
	e.url = fields[1]
	return e, nil
}

// start runs an engine of the test's own.
func start(t *testing.T, data string, env []string, args ...string) *engine {
	t.Helper()
	e, err := launch(data, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.kill)
	return e
}

func (e *engine) kill() {
	_ = e.cmd.Process.Kill()
	<-e.exited
}

// stop sends a signal and returns how long the end took and the exit code.
func (e *engine) stop(t *testing.T, signal syscall.Signal) (time.Duration, int) {
	t.Helper()
	began := time.Now()
	if err := e.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.exited:
	case <-time.After(20 * time.Second):
		t.Fatalf("still running 20 s after %v", signal)
	}
	return time.Since(began), e.cmd.ProcessState.ExitCode()
}

// shared is the engine of all tests that do not mind others' tables.
var shared struct {
	once   sync.Once
	engine *engine
	dir    string
	err    error
}

func sharedEngine(t *testing.T) *engine {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "chstate-engine-test"); shared.err == nil {
			shared.engine, shared.err = launch(shared.dir, nil)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.engine
}

func stopShared() {
	if shared.engine != nil {
		shared.engine.kill()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
}

// query posts a statement and returns what comes back.
func (e *engine) query(t *testing.T, statement string) string {
	t.Helper()
	text, err := post(e.url, statement)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func post(url, statement string) (string, error) {
	resp, err := http.Post(url, "text/plain", strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", resp.Status, text)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is not in\n%s", what, part, text)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer collects what a process writes while a test may read it.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
