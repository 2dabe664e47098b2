package statedoc

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestMergeAsMeltano runs what testdata/merge_corpus.py recorded of Meltano's own merge().
func TestMergeAsMeltano(t *testing.T) {
	f, err := os.Open("testdata/merge_corpus.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 0
	for ; lines.Scan(); n++ {
		var c struct{ Src, Dest, Merged, Raises string }
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("case %d: %v", n, err)
		}
		got, err := Merge([]byte(c.Src), []byte(c.Dest))
		var clash *ClashError
		switch {
		case c.Raises != "":
			if !errors.As(err, &clash) {
				t.Errorf("case %d: Merge(%s, %s) = %s, %v; Meltano raises %s", n, c.Src, c.Dest, got, err, c.Raises)
			}
		case err != nil:
			t.Errorf("case %d: Merge(%s, %s): %v; Meltano gives %s", n, c.Src, c.Dest, err, c.Merged)
		// One name of the corpus is written with an escape, which Merge keeps.
		case strings.ReplaceAll(string(got), `"\u0061"`, `"a"`) != c.Merged:
			t.Errorf("case %d: Merge(%s, %s)\n got %s\nwant %s", n, c.Src, c.Dest, got, c.Merged)
		}
	}
	if err := lines.Err(); err != nil || n < 300 {
		t.Errorf("only %d cases were read: %v", n, err)
	}
}

func TestMergeKeepsLiterals(t *testing.T) {
	for _, tt := range []struct{ name, src, dest, want string }{
		{"numbers", `{"a": 9007199254740993, "b": 1.0}`, `{"c": 1e400, "d": -0.0, "e": 1E+2}`,
			`{"c":1e400,"d":-0.0,"e":1E+2,"a":9007199254740993,"b":1.0}`},
		{"Python's literals", `{"a": NaN, "b": [Infinity,-Infinity]}`, `{"NaN": "Infinity, NaN", "c": -Infinity }`,
			`{"NaN":"Infinity, NaN","c":-Infinity,"a":NaN,"b":[Infinity,-Infinity]}`},
		{"escapes", `{"\u00e9": "\ud83d\ude80"}`, `{"x": "\/"}`, `{"x":"\/","\u00e9":"\ud83d\ude80"}`},
		{"lone surrogates", `{"\ud800": "\udfff"}`, `{"\udc00": 1}`, `{"\udc00":1,"\ud800":"\udfff"}`},
		{"absent halves", ``, `null`, `{}`},
		{"absent partial", `null`, `{"a": 1}`, `{"a":1}`},
		{"S14: absent completed", `{"a": 1}`, ``, `{"a":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Merge([]byte(tt.src), []byte(tt.dest))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// S13: a scalar bookmark under a newer tap's object.
func TestMergeClashNamesThePath(t *testing.T) {
	_, err := Merge([]byte(`{"singer_state":{"bookmarks":{"a/b":{"v":"2026-01-01"}}}}`),
		[]byte(`{"singer_state":{"bookmarks":{"a/b":"2020-01-01"}}}`))
	var clash *ClashError
	if !errors.As(err, &clash) {
		t.Fatalf("got %v, want a ClashError", err)
	}
	if want := (ClashError{Path: "/singer_state/bookmarks/a~1b", Found: "a JSON string"}); *clash != want {
		t.Errorf("got %+v, want %+v", *clash, want)
	}
}

func TestMergeRefusesWhatIsNoObject(t *testing.T) {
	for _, bad := range []string{`[]`, `"{}"`, `{`, "\xff"} {
		if got, err := Merge([]byte(bad), []byte(`{}`)); err == nil {
			t.Errorf("Merge(%q, {}) = %s", bad, got)
		}
		if got, err := Merge([]byte(`{}`), []byte(bad)); err == nil {
			t.Errorf("Merge({}, %q) = %s", bad, got)
		}
	}
}

// objects draws the value of a JSON object whose names are few, so that two of them meet.
func objects() *rapid.Generator[map[string]any] {
	names := rapid.SampledFrom([]string{"a", "b", "c", "bookmarks", "é", "x/y", `q"`})
	scalars := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(v bool) any { return v }),
		rapid.Map(rapid.Int64(), func(v int64) any { return json.Number(mustJSON(v)) }),
		rapid.Map(rapid.String(), func(v string) any { return v }),
		rapid.Map(rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3), func(v []int) any {
			list := make([]any, len(v))
			for i := range v {
				list[i] = json.Number(mustJSON(v[i]))
			}
			return list
		}),
	)
	var at func(depth int) *rapid.Generator[map[string]any]
	at = func(depth int) *rapid.Generator[map[string]any] {
		values := scalars
		if depth > 0 {
			values = rapid.OneOf(scalars, rapid.Map(at(depth-1), func(m map[string]any) any { return m }))
		}
		return rapid.MapOfN(names, values, 0, 5)
	}
	return at(3)
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func decode(t *rapid.T, text []byte) map[string]any {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("the merge gave no JSON: %v in %s", err, text)
	}
	return m
}

// plainMerge is Meltano's function over Go's maps; it panics where Python raises.
func plainMerge(src, dest map[string]any) {
	for name, value := range src {
		if below, ok := value.(map[string]any); ok {
			if _, ok := dest[name]; !ok {
				dest[name] = map[string]any{}
			}
			if len(below) > 0 {
				plainMerge(below, dest[name].(map[string]any))
			}
		} else {
			dest[name] = value
		}
	}
}

func TestMergeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, dest := objects().Draw(t, "src"), objects().Draw(t, "dest")
		srcText, destText := []byte(mustJSON(src)), []byte(mustJSON(dest))
		got, err := Merge(srcText, destText)

		want, raised := decode(t, destText), false
		func() {
			defer func() { raised = recover() != nil }()
			plainMerge(src, want)
		}()
		if raised != (err != nil) {
			t.Fatalf("Merge(%s, %s): %v, the plain merge raised: %v", srcText, destText, err, raised)
		}
		if raised {
			return
		}
		if diff := cmp.Diff(want, decode(t, got)); diff != "" {
			t.Fatalf("Merge(%s, %s): %s", srcText, destText, diff)
		}
		again, err := Merge(srcText, got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("merging the same again changed %s to %s (%v)", got, again, err)
		}
	})
}
