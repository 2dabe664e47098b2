package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestI01I02I03I05StateIDs: any text is an id of its own, to the letter, also one
// of 20,000 characters; a pattern is a glob, in which all but * ? [ ] is literal.
func TestI01I02I03I05StateIDs(t *testing.T) {
	tool := newTool(t)
	var ids []string
	readCase(t, "state_ids.json", &ids)
	tool.run(exitUsage, "set", "--force", "", `{"singer_state":{}}`) // the one text that is no id
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	for _, args := range [][]string{{"get"}, {"clear", "--force"}, {"lock", "show"}, {"bookmarks"}} { // nor is one that is too long
		tool.refuses(exitRefused, []string{"32769 bytes; ids of up to 32768 bytes"}, append(args, strings.Repeat("x", 32769))...)
		if len(*tool.said) > 300 {
			t.Errorf("%v says %d bytes", args, len(*tool.said))
		}
	}
	ids = append(ids, `ends-with-\`, "50% off", "%41")
	slices.Sort(ids)
	ids = slices.Compact(ids)
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
