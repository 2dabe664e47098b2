package cli

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestWhyIsDocumented: docs/cli.md explains each word that the column WHY can
// have, and no other.
func TestWhyIsDocumented(t *testing.T) {
	tool := newTool(t)
	file := filepath.Join(t.TempDir(), "export.json")
	if err := os.WriteFile(file, []byte(`{"a":{"completed":`+good+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"set", "a", "--force", good}, {"merge", "a", good}, {"reset", "a", "--stream", "s", "--force"}, {"import", file},
		{"clear", "a", "--force"}, {"rollback", "a", "--to", "0s", "--force"},
		{"set", "a", "--force", good}, {"clear", "--all", "--force"}, {"set", "a", "--force", good},
	} {
		tool.run(exitDone, args...)
	}
	var first []versionLine
	unmarshal(t, tool.run(exitDone, "history", "a", "--format", "json"), &first)
	tool.run(exitDone, "rollback", "a", "--to", first[len(first)-1].Version.Format(versionLayout), "--force")
	var lines []versionLine
	unmarshal(t, tool.run(exitDone, "history", "a", "--format", "json"), &lines)
	shown := map[string]bool{}
	for _, l := range lines {
		if !l.Current {
			shown[l.Reason] = true
		}
	}

	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)\| WHY \|.*?\n\n`).Find(text)
	explained := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllSubmatch(table, -1) {
		explained[string(row[1])] = true
	}
	equal(t, slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(explained)))
}
