package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cases from the field: states. docs/cases.md says what each one is.

// TestS03S04S05S06S08S12Payloads: what was given comes back to the letter,
// through a file, through a merge, and through export and import.
func TestS03S04S05S06S08S12Payloads(t *testing.T) {
	for _, name := range []string{"pg_log_based", "id_keys_and_scalars", "big_ints", "floats", "nulls", "file_path_keys"} {
		t.Run(name, func(t *testing.T) {
			tool := newTool(t)
			want := compact(t, caseText(t, name+".json"))
			get := func(id string) {
				t.Helper()
				if got := strings.TrimSpace(tool.run(exitDone, "get", id)); got != want {
					t.Errorf("%s is\n%s\nwant\n%s", id, got, want)
				}
			}
			set := append([]string{"set", "a", "--force", "--no-validate"}, "--input-file", caseFile(name+".json"))
			tool.run(exitDone, set...)
			get("a")
			tool.run(exitDone, "copy", "a", "b", "--force")
			get("b")
			tool.run(exitDone, "merge", "c", "--from-state-id", "a")
			get("c")
			exported := tool.run(exitDone, "export")
			other := newTool(t)
			other.fed(exitDone, exported, "import")
			if again := other.run(exitDone, "export"); again != exported {
				t.Errorf("exported\n%s\nand after an import\n%s", exported, again)
			}
		})
	}
}

// TestS01N15LargeState: 100,000 partitions, 14 MB.
func TestS01N15LargeState(t *testing.T) {
	tool := newTool(t)
	var b strings.Builder
	b.WriteString(`{"singer_state":{"bookmarks":{"events":{"partitions":[`)
	for i := range 100_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"context":{"account_id":%d,"region":"r%d"},"replication_key":"updated_at","replication_key_value":"2026-%02d-%02dT00:00:%02d.%03dZ"}`,
			i, i%37, i%12+1, i%28+1, i%60, i%1000)
	}
	b.WriteString(`]},"tail":{"id":1}}}}`)
	text := b.String()
	file := filepath.Join(t.TempDir(), "big.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tool.run(exitDone, "set", "big", "--force", "--input-file", file)
	if got := tool.run(exitDone, "get", "big"); got != text+"\n" {
		t.Fatalf("%d bytes came back of %d", len(got), len(text))
	}
	tool.run(exitDone, "merge", "big", `{"singer_state":{"bookmarks":{"tail":{"id":2}}}}`)
	merged := strings.Replace(text, `"tail":{"id":1}`, `"tail":{"id":2}`, 1)
	if got := tool.run(exitDone, "get", "big"); got != merged+"\n" {
		t.Fatalf("merged: %d bytes of %d", len(got), len(merged))
	}
	exported := tool.run(exitDone, "export")
	if !strings.HasPrefix(exported, `{"big":{"completed":`) || len(exported) < len(text) {
		t.Fatalf("exported %d bytes", len(exported))
	}
	tool.fed(exitDone, exported, "import")
}

// TestS09EmptyState: an empty final state replaces, with a warning; {} says nothing new.
func TestS09EmptyState(t *testing.T) {
	tool := newTool(t)
	tool.run(exitDone, "set", "a", "--force", `{"singer_state":{"bookmarks":{"s":1}}}`)
	tool.run(exitDone, "set", "a", "--force", "--no-validate", "{}")
	tool.says("counts as nothing new")
	if got := tool.run(exitDone, "get", "a"); got != `{"singer_state":{"bookmarks":{"s":1}}}`+"\n" {
		t.Error(got)
	}
	tool.run(exitDone, "set", "a", "--force", "--input-file", caseFile("singer_state_empty.json"))
	tool.says("no bookmarks: the next run starts from the beginning")
	if got := tool.run(exitDone, "get", "a"); got != `{"singer_state":{}}`+"\n" {
		t.Error(got)
	}
}

// TestS10DoubleEncoded: a cell that is a JSON string is named, and left as it is.
func TestS10DoubleEncoded(t *testing.T) {
	tool := newTool(t)
	tool.run(exitDone, "set", "good", "--force", `{"singer_state":{"bookmarks":{"s":1}}}`)
	cell := strings.TrimSpace(caseText(t, "double_encoded_cell.txt"))
	tool.sql("INSERT INTO $.state (state_id, completed_state) VALUES ('bad', '" + strings.ReplaceAll(cell, `\`, `\\`) + "')")
	tool.refuses(exitFailed, []string{`"bad"`, "JSON string, not an object"}, "get", "bad")
	if out := tool.run(exitDone, "list", "--long"); !strings.Contains(out, "bad: completed half: a JSON string") || !strings.Contains(out, "good") {
		t.Errorf("list: %s", out)
	}
	tool.refuses(exitFailed, []string{`"bad"`, "JSON string"}, "copy", "bad", "good", "--force")
	if got := tool.sql("SELECT completed_state FROM $.state FINAL WHERE state_id = 'bad' FORMAT TSVRaw"); got != cell {
		t.Errorf("the row is now %s", got)
	}
}

// TestS13ScalarThenObject: what cannot be merged is named, and kept; merge does
// not make such a state.
func TestS13ScalarThenObject(t *testing.T) {
	tool := newTool(t)
	tool.run(exitDone, "set", "s", "--force", "--input-file", caseFile("scalar_completed.json"))
	tool.refuses(exitRefused, []string{`"s"`, "the stored state has a JSON string", "nothing was written"},
		"merge", "s", "--input-file", caseFile("dict_partial_over_scalar.json"))
	part := strings.ReplaceAll(caseText(t, "dict_partial_over_scalar.json"), "'", `\'`)
	tool.sql("INSERT INTO $.state (state_id, partial_state, completed_state, updated_at) SELECT state_id, '" + part + "', completed_state, updated_at + 1 FROM $.state FINAL")
	tool.refuses(exitFailed, []string{`"s"`, "/singer_state/bookmarks/", "the stored state has a JSON string"}, "get", "s")
	row := tool.sql("SELECT completed_state, partial_state FROM $.state FINAL FORMAT TSVRaw")
	want := strings.TrimSuffix(caseText(t, "scalar_completed.json"), "\n")
	if !strings.HasPrefix(row, want) || !strings.Contains(row, strings.TrimSpace(caseText(t, "dict_partial_over_scalar.json"))) {
		t.Errorf("the row is %s", row)
	}
}

// TestS14PartialAlone: an interrupted first run, and a row of NULLs.
func TestS14PartialAlone(t *testing.T) {
	tool := newTool(t)
	tool.run(exitDone, "merge", "new", `{"singer_state":{"bookmarks":{"s":{"v":1}}}}`)
	if got := tool.run(exitDone, "get", "new"); got != `{"singer_state":{"bookmarks":{"s":{"v":1}}}}`+"\n" {
		t.Error(got)
	}
	tool.sql("INSERT INTO $.state (state_id) VALUES ('null')")
	if got := tool.run(exitDone, "get", "null"); got != "{}\n" {
		t.Error(got)
	}
}

// TestS15ListsAreReplaced: partitions merge as the SDK expects.
func TestS15ListsAreReplaced(t *testing.T) {
	tool := newTool(t)
	tool.run(exitDone, "set", "p", "--force", "--input-file", caseFile("sdk_partitions_completed.json"))
	tool.run(exitDone, "merge", "p", "--input-file", caseFile("sdk_partitions_partial.json"))
	var got, want any
	unmarshal(t, tool.run(exitDone, "get", "p"), &got)
	readCase(t, "sdk_partitions_merged_expected.json", &want)
	equal(t, want, got)
}
