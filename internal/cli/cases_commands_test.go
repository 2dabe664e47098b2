package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate/internal/faultproxy"
)

// Cases from the field: commands. docs/cases.md says what each one is.

const good = `{"singer_state":{"bookmarks":{"s":{"id":7}}}}`

func unmarshal(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// refusedFile tries a file on set and merge: each names what is wrong,
// and the state stays.
func refusedFile(t *testing.T, name string, patterns ...string) {
	t.Helper()
	tool := newTool(t)
	tool.run(exitDone, "set", "a", "--force", good)
	for _, args := range [][]string{{"set", "a", "--force", "--input-file"}, {"merge", "a", "--input-file"}} {
		tool.refuses(exitRefused, patterns, append(args, caseFile(name))...)
	}
	if got := tool.run(exitDone, "get", "a"); got != good+"\n" {
		t.Errorf("the state is now %s", got)
	}
	tool.unlocked()
}

func TestC01LogLines(t *testing.T) {
	refusedFile(t, "log_lines_then_json.txt", "invalid JSON at line 1", "log lines perhaps: keep only the object")
	// What `get` prints, `set` takes.
	tool := newTool(t)
	tool.run(exitDone, "set", "a", "--force", good)
	tool.fed(exitDone, tool.run(exitDone, "get", "a"), "set", "b", "--force", "--input-file", "-")
	if got := tool.run(exitDone, "get", "b"); got != good+"\n" {
		t.Error(got)
	}
}

func TestC03NoWrapper(t *testing.T) {
	refusedFile(t, "no_wrapper.json", `"bookmarks" stands at the top`, "--no-validate|wrap it as")
	tool := newTool(t)
	tool.run(exitDone, "set", "a", "--force", "--no-validate", "--input-file", caseFile("no_wrapper.json"))
	if got, want := tool.run(exitDone, "get", "a"), compact(t, caseText(t, "no_wrapper.json"))+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestC04StoredShape(t *testing.T) {
	refusedFile(t, "completed_partial_shape.json", "stored shape", `pass only the object under "completed"`)
}

func TestC05OtherEncodings(t *testing.T) {
	refusedFile(t, "utf16le_bom.json", `not UTF-8 but UTF-16 \(little endian\)`, "save it as UTF-8")
	refusedFile(t, "cp1250.json", "cp1250")
	tool := newTool(t)
	tool.run(exitDone, "set", "a", "--force", "--input-file", caseFile("bom_utf8.json"))
	if got, want := tool.run(exitDone, "get", "a"), compact(t, strings.TrimPrefix(caseText(t, "bom_utf8.json"), "\ufeff"))+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestC07ImportOfHalves(t *testing.T) {
	tool := newTool(t)
	tool.run(exitDone, "import", caseFile("export_mixed.json"))
	tool.says(`^5 state\(s\) were imported`)
	var in, out map[string]map[string]any
	readCase(t, "export_mixed.json", &in)
	for _, entry := range in { // null and missing halves are empty ones
		for _, half := range []string{"completed", "partial"} {
			if entry[half] == nil {
				entry[half] = map[string]any{}
			}
		}
	}
	unmarshal(t, tool.run(exitDone, "export"), &out)
	equal(t, in, out)

	other := newTool(t)
	other.refuses(exitRefused, []string{`"dev:bad"`, "nothing was written"}, "import", caseFile("export_bad_entry.json"))
	if got := other.run(exitDone, "list"); got != "" {
		t.Errorf("written: %s", got)
	}
}

// TestL02LockTimes: settings come as text, from the environment.
func TestL02LockTimes(t *testing.T) {
	tool := newTool(t)
	tool.with("lock_timeout_seconds=10").run(exitDone, "set", "a", "--force", good)
	for _, bad := range []string{"abc", "0", "-1"} {
		tool.with("lock_timeout_seconds="+bad).refuses(exitUsage, []string{`lock_timeout_seconds is "` + bad + `"`, "from 1 to 120"}, "clear", "a", "--force")
	}
	if got := tool.run(exitDone, "get", "a"); got != good+"\n" {
		t.Errorf("the state is now %s", got)
	}
}

// TestL08TimeZones: the age of a lock is 0 s in whatever zone it is read.
func TestL08TimeZones(t *testing.T) {
	tool := newTool(t)
	tool.sends("session_timezone=Asia/Tokyo")
	tool.run(exitDone, "init")
	tool.sql("INSERT INTO $.state_lock (state_id, lock_id, seq, locked_at, expires_at) VALUES ('a', '!01900000-0000-7000-8000-000000000000', 1, now64(3), now64(3) + 10)")
	if got := tool.run(exitDone, "lock", "show", "a"); !matches(`last heard of +20.*Z \([0-2]s ago\)`, got) {
		t.Errorf("shown: %s", got)
	}
	tool.with("lock_wait_seconds=0").run(exitLocked, "clear", "a", "--force")
}

// TestC09WriteFails: the server takes no insert any more, when the lock is held already.
func TestC09WriteFails(t *testing.T) {
	tool, p := proxied(t)
	tool.run(exitDone, "set", "a", "--force", good)
	p.On(faultproxy.When("INSERT", faultproxy.Code(497), ".`state` ("))
	for _, args := range [][]string{
		{"set", "a", "--force", `{"singer_state":{"x":1}}`},
		{"merge", "a", `{"singer_state":{"x":1}}`},
		{"copy", "a", "b", "--force"},
	} {
		tool.refuses(exitFailed, []string{"497 ACCESS_DENIED", "GRANT INSERT", "init --print-sql"}, args...)
	}
	p.On(nil)
	if got := tool.run(exitDone, "get", "a"); got != good+"\n" {
		t.Errorf("the state is now %s", got)
	}
	tool.unlocked()
}

// TestC10ManyStates: a list takes few statements, however many ids there are.
func TestC10ManyStates(t *testing.T) {
	tool, p := proxied(t)
	const n = 5000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `%c"dev:%05d":{"completed":{"singer_state":{"n":%d}},"partial":{}}`, "{,"[min(i, 1)], i, i)
	}
	all := b.String() + "}\n"
	file := filepath.Join(t.TempDir(), "all.json")
	if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	tool.run(exitDone, "import", file)
	tool.run(exitDone, "import", file)
	tool.run(exitDone, "set", "dev:00007", "--force", `{"singer_state":{"n":7}}`)
	few := func(args ...string) string {
		t.Helper()
		p.Take()
		out := tool.run(exitDone, args...)
		if sent := p.Take(); len(sent) > 12 {
			t.Errorf("%v took %d statements", args, len(sent))
		}
		return out
	}
	if got := strings.Count(few("list"), "\n"); got != n {
		t.Errorf("%d ids", got)
	}
	if few("export") != all {
		t.Error("the export is not what was imported")
	}
	tool.run(exitDone, "clear", "dev:00007", "--force")
	few("clear", "--all", "--force")
	tool.says(fmt.Sprint(n - 1))
	if got := few("list"); got != "" {
		t.Errorf("left: %.200s", got)
	}
}
