//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// C08: whenever Ctrl-C or SIGTERM comes, there is the old state or the new
// one, and the lock is gone within 2 s.
func TestInterruptedAtAnyMoment(t *testing.T) {
	tool := newTool(t)
	state := func(n int) string { return fmt.Sprintf(`{"singer_state":{"bookmarks":{"n":%d}}}`, n) }
	tool.run(exitDone, "set", "--force", "a", state(0))
	file := filepath.Join(t.TempDir(), "import.json")
	interrupted := 0
	for i := 1; i <= 24; i++ {
		old := strings.TrimSpace(tool.run(exitDone, "get", "a"))
		now := state(i)
		args := []string{"set", "--force", "a", now}
		switch i % 3 {
		case 1:
			if err := os.WriteFile(file, []byte(`{"a":{"completed":`+now+`}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			args = []string{"import", file}
		case 2:
			tool.run(exitDone, "set", "--force", "b", now)
			args = []string{"move", "--force", "b", "a"}
		}
		p := tool.start(args...)
		time.Sleep(time.Duration(i) * 6 * time.Millisecond)
		signal := []os.Signal{os.Interrupt, syscall.SIGTERM}[i%2]
		if err := p.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		sent := time.Now()
		code := p.ends(t)
		took := time.Since(sent)
		killed := code == -1 // the signal came before the tool was up
		switch {
		case code == exitInterrupted, killed:
			interrupted++
		case code != exitDone:
			t.Errorf("%q ended with code %d: %s", args, code, &p.err)
		}
		if took > 2*time.Second {
			t.Errorf("%q went on for %s after %s", args, took, signal)
		}
		if got := strings.TrimSpace(tool.run(exitDone, "get", "a")); got != old && got != now {
			t.Errorf("after %q, interrupted, the state is %s; old %s, new %s", args, got, old, now)
		} else if args[0] == "move" && got == old {
			if left := strings.TrimSpace(tool.run(exitDone, "get", "b")); left != now {
				t.Errorf("neither place has the state that was moved: %s", left)
			}
		}
		held := tool.sql("SELECT count() FROM (SELECT state_id, lock_id, argMax(released, seq) AS r FROM $.state_lock GROUP BY state_id, lock_id) WHERE r = 0")
		if held != "0" {
			t.Errorf("%s claims are left after %q", held, args)
		}
	}
	if interrupted == 0 {
		t.Error("no command was interrupted")
	}
}
