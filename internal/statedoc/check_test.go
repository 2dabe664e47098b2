package statedoc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 900) + "1" + strings.Repeat("}", 900)
	for _, good := range []string{`{}`, ` {"a": [1, {"b": null}]} `, `{"a": NaN, "b": [-Infinity]}`, `{"a":1,"a":2}`, `{"\ud800":1}`, deep} {
		if err := Check([]byte(good)); err != nil {
			t.Errorf("Check(%.60s): %v", good, err)
		}
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", " \n", "invalid JSON at line 2, column 1: there is no text"},
		{"list", `[{"singer_state": {}}]`, "a JSON list, not an object"},
		{"number", `NaN`, "a JSON number, not an object"},
		{"null", `null`, "null, not an object"},
		{"boolean", `true`, "a JSON boolean, not an object"},
		{"string", `"x"`, "a JSON string, not an object"},
		{"S10: encoded twice", `"{\"singer_state\": {\"a\": 7}}"`, "a JSON string, not an object (the state was encoded as JSON twice)"},
		{"cut short", `{"a": {"b": `, "invalid JSON at line 1, column 13: the text ends in the middle of a JSON value"},
		{"no comma", "{\n  \"é\": 1 x}", `invalid JSON at line 2, column 10: `},
		{"single quotes", `{'a': 1}`, "invalid JSON at line 1, column 2: "},
		{"trailing comma", `{"a": 1,}`, "invalid JSON at line 1, column "},
		{"two objects", "{}\n{}", "invalid JSON at line 2, column 1: there is more text after the end of a JSON object"},
		{"a glued literal", `{"a": 1NaN}`, "invalid JSON at line 1, column 8: "},
		{"a literal as a name", `{NaN: 1}`, "invalid JSON at line 1, column "},
		{"control character", "{\"a\": \"\x01\"}", "invalid JSON at line 1, column "},
		{"byte order mark", "\ufeff{}", "invalid JSON at line 1, column 1: "},
		{"not UTF-8", "{\"a\": \"\x8elu\"}", "the text is not UTF-8 but probably a Windows code page (cp1250, cp1252, …), at line 1, column 8"},
		{"Latin", "{\"a\": \"\xe9\"}", "the text is not UTF-8 but probably ISO 8859 or a Windows code page (cp1250, cp1252, …), at line 1, column 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Check([]byte(tt.text))
			if err == nil {
				t.Fatal("it was let through")
			}
			if msg := err.Error(); !strings.HasPrefix(msg, tt.want) || strings.Contains(msg, "\n") {
				t.Errorf("got  %s\nwant %s", msg, tt.want)
			}
		})
	}
}

func TestEmpty(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " ": true, "null": true, "{}": true, " {\n } ": true,
		`{"a":1}`: false, `[]`: false, `"{}"`: false, "{": false, "}": false,
	} {
		if got := Empty([]byte(text)); got != want {
			t.Errorf("Empty(%q) = %v", text, got)
		}
	}
}

// C05: files as Windows programs write them.
func TestDecode(t *testing.T) {
	got, err := Decode([]byte("\xef\xbb\xbf{\"a\": \"žluťoučký\"}"))
	if err != nil || string(got) != `{"a": "žluťoučký"}` {
		t.Errorf("with a byte order mark: %q, %v", got, err)
	}
	for name, content := range map[string]string{
		"UTF-16 (little endian)": "\xff\xfe{\x00}\x00",
		"UTF-16 (big endian)":    "\xfe\xff\x00{\x00}",
		"UTF-32 (little endian)": "\xff\xfe\x00\x00{\x00\x00\x00}\x00\x00\x00",
		"UTF-32 (big endian)":    "\x00\x00\x00{\x00\x00\x00}",
		"cp1250":                 "{\"a\": \"\x9elu\x9dou\xe8k\xfd\"}",
	} {
		if _, err := Decode([]byte(content)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, unmarked := range []string{"{\x00}\x00", "\x00{\x00}"} {
		if _, err := Decode([]byte(unmarked)); err == nil || !strings.Contains(err.Error(), "UTF-16") {
			t.Errorf("%q: %v", unmarked, err)
		}
	}
}

func TestShapeOf(t *testing.T) {
	for text, want := range map[string]Shape{
		`{"singer_state":{"bookmarks":{}}}`:       {Wrapped: true},
		`{"singer_state":{}}`:                     {Wrapped: true, NoBookmarks: true},
		`{"singer_state":null,"x":1}`:             {Wrapped: true, NoBookmarks: true},
		`{"completed":{},"partial":{}}`:           {Halves: true},
		`{"partial":{"singer_state":{}}}`:         {Halves: true},
		`{"completed":{},"singer_state":{"a":1}}`: {Wrapped: true},
		`{"bookmarks":{}}`:                        {Bare: true},
		`{}`:                                      {},
	} {
		got, err := ShapeOf([]byte(text))
		if err != nil || got != want {
			t.Errorf("ShapeOf(%s) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestPretty(t *testing.T) {
	in := `{"a":{"b":[1.0,{},[]],"c":{}},"d":"é"}`
	// What Python's json.dumps(…, indent=2, ensure_ascii=False) prints.
	want := "{\n  \"a\": {\n    \"b\": [\n      1.0,\n      {},\n      []\n    ],\n    \"c\": {}\n  },\n  \"d\": \"é\"\n}"
	got, err := Pretty([]byte(in))
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s", err, got)
	}
	back, err := Compact(got)
	if err != nil || string(back) != in {
		t.Errorf("and back: %v\n%s", err, back)
	}
}

func FuzzFormat(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[NaN,-Infinity,1e400]}`, `{"s":{"id":1},"s":{"id":2}}`, "\ufeff{}", `"{\"a\":1}"`, `{"\ud800":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := string(in)
		compact, err := Compact(in)
		if (err == nil) != (Check(in) == nil) {
			t.Fatalf("Check and Compact disagree: %v", err)
		}
		if string(in) != before {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		pretty, err := Pretty(compact)
		if err != nil {
			t.Fatalf("Pretty refuses %q: %v", compact, err)
		}
		if again, err := Compact(pretty); err != nil || string(again) != string(compact) {
			t.Fatalf("%q became %q (%v)", compact, again, err)
		}
		if merged, err := Merge(in, nil); err != nil || string(merged) != string(compact) {
			t.Fatalf("merged onto nothing %q became %q (%v)", compact, merged, err)
		}
	})
}

// S01: a state of 100,000 streams, about 14 MB.
func BenchmarkMerge(b *testing.B) {
	var state bytes.Buffer
	state.WriteString(`{"singer_state":{"bookmarks":{"first":{}`)
	for i := range 100_000 {
		fmt.Fprintf(&state, `,"stream_%d":{"context":{"account":"%032d"},"replication_key":"updated_at","replication_key_value":"2026-01-01T00:00:00Z"}`, i, i)
	}
	state.WriteString(`}}}`)
	b.SetBytes(int64(state.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Merge([]byte(`{"singer_state":{"bookmarks":{"first":{"replication_key_value":1}}}}`), state.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
