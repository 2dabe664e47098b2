package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate/internal/chtest"
)

// tool runs the tool within the test, on a schema of the test's own.
type tool struct {
	*testing.T
	env []string
}

func newTool(t *testing.T) tool {
	return tool{t, []string{
		"MELTANO_STATE_BACKEND_URI=" + chtest.Target(t).URI("analytics"),
		"MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA=" + chtest.Schema(t),
	}}
}

// run gives what the tool printed; it must end with code.
func (t tool) run(code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := Main(t.Context(), args, t.env, strings.NewReader(""), &stdout, &stderr); got != code {
		t.Errorf("chstate %q ended with code %d instead of %d: %s", args, got, code, stderr.String())
	}
	return stdout.String()
}

func readCase(t *testing.T, name string, to any) {
	t.Helper()
	text, err := os.ReadFile("testdata/cases/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

// I01, I02: any text is an id of its own, to the letter.
// I03: a pattern is a glob, in which all but * ? [ ] is literal.
func TestStateIDsAndPatterns(t *testing.T) {
	tool := newTool(t)
	var ids []string
	readCase(t, "state_ids.json", &ids)
	tool.run(exitRefused, "set", "--force", "", `{"singer_state":{}}`) // the one text that is no id
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	ids = append(ids, `ends-with-\`)
	state := func(id string) string {
		text, err := json.Marshal(map[string]any{"singer_state": map[string]any{"bookmarks": map[string]string{"of": id}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, id := range ids {
		tool.run(exitDone, "set", "--force", "--", id, state(id))
	}
	for _, id := range ids {
		if diff := cmp.Diff(state(id)+"\n", tool.run(exitDone, "get", "--", id)); diff != "" {
			t.Errorf("get %q: %s", id, diff)
		}
	}
	slices.Sort(ids)
	list := func(args ...string) []string {
		out := tool.run(exitDone, append([]string{"list"}, args...)...)
		return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
	}
	if diff := cmp.Diff(ids, list()); diff != "" {
		t.Errorf("list: %s", diff)
	}

	var patterns [][2]json.RawMessage
	readCase(t, "patterns_expected.json", &patterns)
	for _, p := range patterns {
		var pattern string
		var want []string
		if err := json.Unmarshal(p[0], &pattern); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(p[1], &want); err != nil {
			t.Fatal(err)
		}
		if got := list("--pattern", pattern); !slices.Equal(want, got) {
			t.Errorf("list --pattern %q gave %q, want %q", pattern, got, want)
		}
	}

	gone := ids[len(ids)/2]
	tool.run(exitDone, "clear", "--force", "--", gone)
	tool.run(exitNoState, "get", "--", gone)
	if got := list(); len(got) != len(ids)-1 {
		t.Errorf("after clearing %q there are %d ids, want %d", gone, len(got), len(ids)-1)
	}
}
