//go:build unix

package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
)

// process is a run of the tool.
type process struct {
	*exec.Cmd
	out, err chtest.Log
}

// start runs the tool as a process of its own, in the test's environment.
func (t tool) start(args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "chstate") // testscript goes by the name
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(link, args...)}
	p.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}, t.env...)
	p.Dir = t.TempDir()
	p.Stdout, p.Stderr = &p.out, &p.err
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// ends waits for the process and gives its code, -1 when a signal ended it.
func (p *process) ends(t testing.TB) int {
	t.Helper()
	limit := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
	defer limit.Stop()
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// until waits for what another process does.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}
