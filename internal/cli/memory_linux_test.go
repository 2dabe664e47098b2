package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chstate/chstate/internal/chtest"
)

var peak = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// An export of 100,000 states takes less than 64 MB of memory, as the built
// tool runs it. The kernel is asked while it runs: what it says at the end
// counts our own memory, from between fork and exec.
func TestExportMemory(t *testing.T) {
	binary, err := filepath.Abs("../../bin/chstate")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("`make build` makes what this test runs: %v", err)
	}
	const n = 100_000
	tool := newTool(t)
	schema := strings.TrimPrefix(tool.env[1], "MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA=")
	tool.run(exitDone, "init")
	chtest.SQL(t, fmt.Sprintf(`INSERT INTO %s.state (state_id, completed_state) SELECT concat('prod:tap-', toString(number), '-to-target'),
		concat('{"singer_state":{"bookmarks":{"s":{"replication_key":"id","replication_key_value":', toString(number), '},"text":"', repeat('x', 200), '"}}}') FROM numbers(%d)`, schema, n))
	cmd := exec.Command(binary, "export")
	cmd.Env = append(os.Environ(), tool.env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	states, most, looks := 0, 0, 0
	for piece := make([]byte, 1<<20); ; {
		got, err := io.ReadFull(out, piece)
		states += bytes.Count(piece[:got], []byte(`"partial":{}`))
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil {
			if found := peak.FindSubmatch(status); found != nil {
				kib, _ := strconv.Atoi(string(found[1])) // digits
				most = max(most, kib)
				looks++
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if states < n-40 || states > n { // one may be cut in two at the end of a piece
		t.Errorf("%d states were exported, want %d", states, n)
	}
	if looks < 10 || most > 64<<10 {
		t.Errorf("the export took %d KiB of memory (seen %d times)", most, looks)
	}
}
