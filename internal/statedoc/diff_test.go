package statedoc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func show(changes []Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s|%s: %s -> %s", c.Stream, c.Path, c.Old, c.New))
	}
	return out
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct {
		name, old, now string
		want           []string
	}{
		{"order, spaces and spelling do not matter",
			`{"singer_state": {"bookmarks": {"a": {"x": "é", "y": [1, {"z": 2}]}, "b": 1}}}`,
			`{"singer_state":{"bookmarks":{"b":1,"a":{"y":[1,{"z":2}],"x":"\u00e9"}}}}`, nil},
		{"by stream and bookmark",
			`{"singer_state":{"bookmarks":{"a":{"replication_key":"id","replication_key_value":7},"gone":{"v":1}},"currently_syncing":"a"}}`,
			`{"singer_state":{"bookmarks":{"new":{"v":2},"a":{"replication_key":"id","replication_key_value":8}},"currently_syncing":null}}`,
			[]string{"a|replication_key_value: 7 -> 8", "gone|: {\"v\":1} -> ", "new|:  -> {\"v\":2}", `|singer_state.currently_syncing: "a" -> null`}},
		{"number literals matter", `{"singer_state":{"bookmarks":{"a":1.0}}}`, `{"singer_state":{"bookmarks":{"a":1}}}`, []string{"a|: 1.0 -> 1"}},
		{"S15: partitions by context, whatever their order",
			`{"singer_state":{"bookmarks":{"t":{"partitions":[{"context":{"o":"a","r":"w"},"v":1},{"context":{"o":"b","r":"w"},"v":2}]}}}}`,
			`{"singer_state":{"bookmarks":{"t":{"partitions":[{"context":{"r":"w","o":"b"},"v":3},{"context":{"o":"a","r":"w"},"v":1},{"context":{"o":"c"},"v":4}]}}}}`,
			[]string{`t|partitions[{"o":"b","r":"w"}].v: 2 -> 3`, `t|partitions[{"o":"c"}]:  -> {"context":{"o":"c"},"v":4}`}},
		{"lists of one length by position", `{"singer_state":{"bookmarks":{"t":[1,2]}}}`, `{"singer_state":{"bookmarks":{"t":[1,3]}}}`, []string{"t|[1]: 2 -> 3"}},
		{"other lists as a whole", `{"singer_state":{"bookmarks":{"t":[1,2]}}}`, `{"singer_state":{"bookmarks":{"t":[1]}}}`, []string{"t|: [1,2] -> [1]"}},
		{"S12: names that need quotes",
			`{"singer_state":{"bookmarks":{"f":{"s3://b/a b.csv":{"m":1},"":{"k":1}}}}}`,
			`{"singer_state":{"bookmarks":{"f":{"s3://b/a b.csv":{"m":2},"":{"k":2}}}}}`,
			[]string{`f|"s3://b/a b.csv".m: 1 -> 2`, `f|"".k: 1 -> 2`}},
		{"nothing before", ``, `{"singer_state":{"bookmarks":{"a":1}}}`, []string{"a|:  -> 1"}},
		{"nothing after", `{"singer_state":{"bookmarks":{"a":1}}}`, `{}`, []string{"a|: 1 -> "}},
		{"the wrapper was left off", `{"singer_state":{"bookmarks":{"a":1}}}`, `{"bookmarks":{"a":1}}`, []string{"a|: 1 -> ", `|bookmarks:  -> {"a":1}`}},
		{"no object where bookmarks must be", `{"singer_state":{"bookmarks":{"a":1}}}`, `{"singer_state":null}`,
			[]string{`|singer_state: {"bookmarks":{"a":1}} -> null`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Diff([]byte(tt.old), []byte(tt.now))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, show(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, bad := range [][2]string{{`{`, `{}`}, {`{}`, `[]`}} {
		if _, err := Diff([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("Diff(%s, %s) gave no error", bad[0], bad[1])
		}
	}
}

// A state differs from itself in nothing, and two states differ the same way
// seen from either side.
func TestDiffIsSymmetric(t *testing.T) {
	scalars := rapid.SampledFrom([]string{`1`, `"x"`, `null`, `[]`, `{}`, `[1,{"context":1}]`, `{"a":{"b":2}}`, `{"a":3}`})
	gen := rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"s", "t", "u"}), rapid.ID[string]).Draw(t, "names") {
			members = append(members, fmt.Sprintf("%q:%s", name, scalars.Draw(t, "value")))
		}
		text := strings.Join(members, ",")
		return rapid.SampledFrom([]string{
			`{"singer_state":{"bookmarks":{` + text + `}}}`, `{` + text + `}`, `{"singer_state":{` + text + `}}`,
		}).Draw(t, "shape")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if same, err := Diff([]byte(a), []byte(a)); err != nil || len(same) > 0 {
			t.Fatalf("%s differs from itself: %v, %v", a, show(same), err)
		}
		there, err := Diff([]byte(a), []byte(b))
		if err != nil {
			t.Fatal(err)
		}
		back, err := Diff([]byte(b), []byte(a))
		if err != nil || len(there) != len(back) {
			t.Fatalf("%s against %s: %v there, %v back, %v", a, b, show(there), show(back), err)
		}
		if x, _ := parse([]byte(a)); len(there) == 0 {
			if y, _ := parse([]byte(b)); !equal(x, y) && x.streams() != nil && y.streams() != nil {
				t.Fatalf("no difference was found between %s and %s", a, b)
			}
		}
	})
}
