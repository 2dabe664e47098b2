package statedoc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readEntries(text string) ([]string, error) {
	var out []string
	for e, err := range Entries([]byte(text)) {
		if err != nil {
			return out, err
		}
		out = append(out, fmt.Sprintf("%s: %s | %s", e.ID, e.Completed, e.Partial))
	}
	return out, nil
}

func TestEntries(t *testing.T) {
	got, err := readEntries(` {
		"dev:a": {"completed": {"singer_state": {"bookmarks": {"s": {"id": 9007199254740993, "f": 1.0, "n": NaN}}}}, "partial": {}},
		"only \"partial\"": {"partial": {"x": -Infinity}, "later": "whatever Meltano adds", "completed": null},
		"both-null": {"completed": null, "partial": null}, "missing-keys": {}, "50% off/\u00e9t\u00e9 _x_": {"completed": {"NaN": "NaN"}}
	} ` + "\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`dev:a: {"singer_state": {"bookmarks": {"s": {"id": 9007199254740993, "f": 1.0, "n": NaN}}}} | {}`,
		`only "partial":  | {"x": -Infinity}`, `both-null:  | `, `missing-keys:  | `, `50% off/été _x_: {"NaN": "NaN"} | `,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, err := range Entries([]byte(`{"a":{},"b":{},"c":[]}`)) {
		if err != nil {
			t.Error(err)
		}
		break // ends it without a word
	}
}

func TestEntriesRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a list", `[{"a": {}}]`, "a JSON list, not an object"},
		{"nothing", ` `, "invalid JSON at line 1, column 2: there is no text"},
		{"cut short", `{"a": {"completed": {}, "par`, "invalid JSON at line 1, column "},
		{"more", `{"a": {}} {}`, "invalid JSON at line 1, column 11: there is more text after the end of a JSON object"},
		{"two words", `{"a": {} "b": {}}`, "invalid JSON at line 1, column 10: "},
		{"C07: no object", `{"dev:good": {"completed": {}}, "dev:bad": "not an object"}`, `the entry of state "dev:bad" is a JSON string, not an object`},
		{"a half that is none", `{"x": {"completed": [1]}}`, `the entry of state "x" is not usable: its completed half is a JSON list, not an object`},
		{"S10: encoded twice", `{"x": {"partial": "{\"a\":1}"}}`, `its partial half is a JSON string, not an object (the state was encoded as JSON twice)`},
		{"what get prints", `{"singer_state": {"bookmarks": {}}}`, `the entry of state "singer_state" is an object with "bookmarks", but with neither "completed" nor "partial"`},
		{"no Unicode", `{"\ud800": {}}`, `under a name that is not Unicode text`},
		{"no UTF-8", "{\"a\": {\"completed\": {\"x\": \"\x8e\"}}}", "the text is not UTF-8 but probably a Windows code page"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readEntries(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if strings.Contains(tt.text, "dev:bad") {
				var entry *EntryError
				if !errors.As(err, &entry) || entry.ID != "dev:bad" {
					t.Errorf("the error does not name the entry: %#v", err)
				}
			}
		})
	}
}

// What AppendEntry writes, Entries reads.
func TestAppendEntry(t *testing.T) {
	out, err := AppendEntry([]byte("{"), Entry{ID: `a "b"` + "\n", Completed: []byte(`{ "x": 1.0 }`)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"a \"b\"\n":{"completed":{"x":1.0},"partial":{}}`
	if string(out) != want {
		t.Errorf("got %s, want %s", out, want)
	}
	back, err := readEntries(string(out) + "}")
	if diff := cmp.Diff([]string{`a "b"` + "\n" + `: {"x":1.0} | {}`}, back); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, e := range []Entry{{ID: "a", Partial: []byte(`"x"`)}, {ID: "a\xff"}} {
		out, err := AppendEntry([]byte("before"), e)
		if err == nil || string(out) != "before" {
			t.Errorf("AppendEntry(%+v) = %s, %v", e, out, err)
		}
	}
}
