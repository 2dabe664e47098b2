package statedoc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBookmarks(t *testing.T) {
	state := func(bookmarks string) string { return `{"singer_state":{"bookmarks":` + bookmarks + `}}` }
	for _, tt := range []struct {
		name, state string
		want        []Bookmark
	}{
		{"the SDK's", state(`{"users":{"replication_key":"id","replication_key_value":9007199254740993}}`),
			[]Bookmark{{Stream: "users", Key: "id", Value: []byte(`9007199254740993`)}}},
		{"S08: nulls", state(`{"a":{"replication_key":"updated_at","replication_key_value":null},"b":null,"null":{"x":1},"c":{"partitions":[]}}`),
			[]Bookmark{{Stream: "a", Key: "updated_at"}, {Stream: "b"}, {Stream: "null", Key: "x", Value: []byte(`1`)}, {Stream: "c"}}},
		{"a key without a value", state(`{"a":{"replication_key":"id","starting_replication_value":null}}`),
			[]Bookmark{{Stream: "a", Key: "id"}}},
		{"bare values", state(`{"ads":"2026-02-01T00:00:00Z"}`),
			[]Bookmark{{Stream: "ads", Value: []byte(`"2026-02-01T00:00:00Z"`)}}},
		{"under the key's own name", state(`{"t":{"updated_at":"2026-02-01","version":3}}`),
			[]Bookmark{{Stream: "t", Key: "updated_at", Value: []byte(`"2026-02-01"`)}}},
		{"S03: LOG_BASED", state(`{"public-orders":{"last_replication_method":"LOG_BASED","lsn":98765432101234,"version":1712345678901,"xmin":null},"e":{}}`),
			[]Bookmark{{Stream: "public-orders", Key: "lsn", Value: []byte(`98765432101234`)}, {Stream: "e"}}},
		{"S15: partitions", state(`{"tickets":{"partitions":[
			{"context":{"org":"a"},"replication_key":"updated_at","replication_key_value":"2026-01-01T00:00:00Z"},
			{"context":{"org":"b"},"replication_key":"updated_at","replication_key_value":"2026-01-03T00:00:00Z"},
			{"context":{"org":"c"},"replication_key":"updated_at","replication_key_value":null},
			{"context":{"org":"d"},"progress_markers":{"replication_key_value":"2027-01-01T00:00:00Z"}}]}}`),
			[]Bookmark{{Stream: "tickets", Key: "updated_at", Value: []byte(`"2026-01-03T00:00:00Z"`), Partitions: 4}}},
		{"numbers by value", state(`{"n":{"partitions":[{"replication_key_value":9},{"replication_key_value":10},{"replication_key_value":-11}]}}`),
			[]Bookmark{{Stream: "n", Value: []byte(`10`), Partitions: 3}}},
		{"2^53 and one more", state(`{"n":{"partitions":[{"replication_key_value":9007199254740993},{"replication_key_value":9007199254740992}]}}`),
			[]Bookmark{{Stream: "n", Value: []byte(`9007199254740993`), Partitions: 2}}},
		{"S04: of no known form", state(`{"views": {"10": "b", "9": "a"}}`),
			[]Bookmark{{Stream: "views", Value: []byte(`{"10":"b","9":"a"}`)}}},
		{"no wrapper, which Meltano would not find", `{"bookmarks":{"a":{"id":1}}}`, nil},
		{"no object", `{"singer_state":{"bookmarks":[1]}}`, nil},
		{"nothing", ``, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Bookmarks([]byte(tt.state))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := Bookmarks([]byte(`[1]`)); err == nil {
		t.Error("a list was taken for a state")
	}
}

func TestForget(t *testing.T) {
	const state = `{"singer_state": {"bookmarks": {"a": {"v": 1.0}, "b": 1e400, "c": NaN}, "x": "\u00e9"}, "y": 9007199254740993}`
	kept, forgotten, err := Forget([]byte(state), "b", "a", "never there")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"singer_state":{"bookmarks":{"c":NaN},"x":"\u00e9"},"y":9007199254740993}`
	if string(kept) != want || len(forgotten) != 2 {
		t.Errorf("got %s and %q, want %s", kept, forgotten, want)
	}
	for _, same := range []string{state, ``, `{"a": 1}`, `{"singer_state": null}`} {
		kept, forgotten, err := Forget([]byte(same), "never there")
		if err != nil || string(kept) != same || forgotten != nil {
			t.Errorf("Forget(%s) = %s, %q, %v", same, kept, forgotten, err)
		}
	}
}
