package statedoc

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readCase(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/cases/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// compacted is a text without its spaces, by another implementation than ours.
func compacted(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// States that people reported trouble with go through a merge without a change
// but for their spaces: S03 nulls and empty streams, S04 ids as keys, S05 digits,
// S06 floats, S08 null bookmarks, S12 paths as keys.
func TestReportedStatesSurvive(t *testing.T) {
	for _, name := range []string{"pg_log_based", "id_keys_and_scalars", "big_ints", "floats", "nulls", "file_path_keys"} {
		t.Run(name, func(t *testing.T) {
			text := readCase(t, name)
			for what, halves := range map[string][2][]byte{
				"as the completed half": {nil, text},
				"as the partial half":   {text, nil},
				"onto itself":           {text, text},
			} {
				got, err := Merge(halves[0], halves[1])
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(compacted(t, text), string(got)); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
			}
		})
	}
}

// S15: lists are replaced, not merged.
func TestPartitionsAreReplaced(t *testing.T) {
	got, err := Merge(readCase(t, "sdk_partitions_partial"), readCase(t, "sdk_partitions_completed"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compacted(t, readCase(t, "sdk_partitions_merged_expected")), string(got)); diff != "" {
		t.Error(diff)
	}
}
