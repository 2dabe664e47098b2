package service

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/chstate/chstate"
)

// FuzzLines: whatever arrives, the service ends when its input does, and says
// nothing but JSON lines, of which each is an answer, an event or the greeting.
func FuzzLines(f *testing.F) {
	const init = `{"id":1,"op":"init","uri":"clickhouse://u:p@h/d","settings":{}}` + "\n"
	for _, rest := range []string{
		"", "{", "[]", "null", `{"id":2,"op":"get","state_id":"a"}`, `{"id":2,"op":"nonsense"}`, `{"id":2,"op":"set","state_id":"a","completed":"{}"}`,
		`{"id":2,"op":"lock","state_id":"a"}` + "\n" + `{"id":3,"op":"release","hold":1}`, `{"id":2,"op":"all","pattern":"*"}` + "\n" + `{"id":3,"op":"cancel","of":2}`,
		`{"id":2,"op":"set_all"}` + "\n" + `{"id":3,"op":"put","of":2,"states":[{"id":"a"}],"last":true}`, `{"id":-1,"op":"ping"}`, `{"id":2,"op":"init"}`,
		`{"id":2,"op":"shutdown"}`, "\xff\xfe", strings.Repeat("[", 5000), `{"id":18446744073709551615,"op":"ping"}`, `{"id":2,"id":3,"op":"ping"}`,
	} {
		f.Add([]byte(init + rest + "\n"))
		f.Add([]byte(rest))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := Run(t.Context(), bytes.NewReader(in), &out, io.Discard, Config{
			Open: func(Init, *slog.Logger) (Store, error) {
				store := newFake()
				store.all = func(yield func(chstate.State, error) bool) {
					for _, id := range []string{"a", "b"} {
						if !yield(chstate.State{ID: id}, nil) {
							return
						}
					}
				}
				return store, nil
			},
		}); err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n")) {
			var said map[string]any
			if err := json.Unmarshal(line, &said); err != nil {
				t.Fatalf("line %d is %q: %v", i, line, err)
			}
			_, answer := said["id"]
			_, event := said["event"]
			if i > 0 && !answer && !event {
				t.Fatalf("line %d is %q", i, line)
			}
		}
	})
}
