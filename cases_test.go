package chstate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate"
)

// Cases from the field: states. docs/cases.md says what each one is.

func readCase(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/cases/" + name)
	must(t, err)
	return string(text)
}

// Nothing is rounded, dropped or reordered, in either half, by a merge, or by
// an export and an import.
func TestS03S04S05S06S08S12Payloads(t *testing.T) {
	s, other := newStore(t), newStore(t)
	for _, name := range []string{"pg_log_based", "id_keys_and_scalars", "big_ints", "floats", "nulls", "file_path_keys"} {
		text := readCase(t, name+".json")
		var short bytes.Buffer
		must(t, json.Compact(&short, []byte(text)))

		must(t, s.Update(t.Context(), chstate.State{ID: name, Completed: raw(text)}))
		wantState(t, s, name, `{}`, text)
		for range 2 { // the second one is merged onto the first
			must(t, s.Update(t.Context(), chstate.State{ID: name, Partial: raw(text)}))
		}
		st, err := s.Get(t.Context(), name)
		must(t, err)
		merged, err := st.Merged()
		must(t, err)
		for what, got := range map[string]json.RawMessage{"partial": st.Partial, "merged": merged} {
			var b bytes.Buffer
			must(t, json.Compact(&b, got))
			if d := cmp.Diff(short.String(), b.String()); d != "" {
				t.Errorf("%s, %s: %s", name, what, d)
			}
		}
	}
	var first, second bytes.Buffer
	_, err := s.Export(t.Context(), &first, "")
	must(t, err)
	read, err := chstate.ReadExport(strings.NewReader(first.String()))
	must(t, err)
	must1(t)(other.SetAll(t.Context(), states(read...)))
	_, err = other.Export(t.Context(), &second, "")
	must(t, err)
	if d := cmp.Diff(first.String(), second.String()); d != "" {
		t.Errorf("after an import: %s", d)
	}
}

func TestS15ListsAreReplaced(t *testing.T) {
	s := newStore(t)
	must(t, s.Update(t.Context(), chstate.State{ID: "p", Completed: raw(readCase(t, "sdk_partitions_completed.json"))}))
	must(t, s.Update(t.Context(), chstate.State{ID: "p", Partial: raw(readCase(t, "sdk_partitions_partial.json"))}))
	st, err := s.Get(t.Context(), "p")
	must(t, err)
	text, err := st.Merged()
	must(t, err)
	var got, want any
	must(t, json.Unmarshal(text, &got))
	must(t, json.Unmarshal([]byte(readCase(t, "sdk_partitions_merged_expected.json")), &want))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
