package chstate_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

// C07: what was exported can be imported, and comes out the same.
func TestExportAndImport(t *testing.T) {
	o := options(t)
	var done [2]int
	o.Progress = func(n, total int) { done = [2]int{n, total} }
	s := open(t, o)
	export := func() string {
		t.Helper()
		var out bytes.Buffer
		_, err := s.Export(t.Context(), &out, "")
		must(t, err)
		return out.String()
	}
	if got := export(); got != "{}\n" {
		t.Errorf("the export of nothing is %q", got)
	}
	in, err := os.Open("internal/cli/testdata/cases/export_mixed.json")
	must(t, err)
	defer in.Close()
	read, err := chstate.ReadExport(in)
	must(t, err)
	if n := must1(t)(s.SetAll(t.Context(), states(read...))); n != 5 || done != [2]int{5, 5} {
		t.Errorf("%d states were imported, progress %v; want 5", n, done)
	}
	const want = `{"50% off/été _x_":{"completed":{"singer_state":{"bookmarks":{}}},"partial":{}},` +
		`"dev:both-null":{"completed":{},"partial":{}},"dev:missing-keys":{"completed":{},"partial":{}},` +
		`"dev:only-partial":{"completed":{},"partial":{"singer_state":{"bookmarks":{"s":{"id":2}}}}},` +
		`"dev:tap-a-to-target-b":{"completed":{"singer_state":{"bookmarks":{"s":{"id":1}}}},"partial":{}}}` + "\n"
	if got := export(); got != want {
		t.Errorf("exported\n%s, want\n%s", got, want)
	}
	back, err := chstate.ReadExport(strings.NewReader(export()))
	must(t, err)
	must1(t)(s.SetAll(t.Context(), states(back...)))
	if got := export(); got != want {
		t.Errorf("exported after importing it\n%s, want\n%s", got, want)
	}
	if done != [2]int{5, 0} {
		t.Errorf("the progress of an export is %v", done)
	}
}

// S10: a row that is no state is left out, by name, and the others are not.
func TestExportLeavesOut(t *testing.T) {
	o := options(t)
	s := open(t, o)
	must(t, s.Set(t.Context(), chstate.State{ID: "good", Completed: raw(`{"n": NaN}`)}))
	chtest.SQL(t, fmt.Sprintf(`INSERT INTO %s.state (state_id, completed_state) VALUES ('bad', '"{}"')`, o.Schema))
	var out bytes.Buffer
	done, err := s.Export(t.Context(), &out, "")
	must(t, err)
	if out.String() != `{"good":{"completed":{"n":NaN},"partial":{}}}`+"\n" || done.States != 1 {
		t.Errorf("exported %s, %+v", out.String(), done)
	}
	if len(done.LeftOut) != 1 || !strings.Contains(done.LeftOut[0].Error(), `"bad" is not usable: its completed half is a JSON string, not an object`) {
		t.Errorf("left out: %v", done.LeftOut)
	}
}

func TestReadExport(t *testing.T) {
	last, err := chstate.ReadExport(strings.NewReader("\ufeff" + `{"a":{"completed":{"n":1}},"b":{},"a":{"completed":{"n":2}}}`))
	must(t, err)
	if len(last) != 2 || string(last[0].Completed) != `{"n":2}` {
		t.Errorf("of two entries with one id: %s", last)
	}
	for _, tt := range []struct{ text, want string }{
		{`{"a": {}, "": {}}`, "the state id is empty"},
		{`{"singer_state": {"bookmarks": {}}}`, `write it with "chstate set"`},
		{`{"completed": {}, "partial": {}}`, `write it with "chstate set"`},
		{"2026-01-01 INFO exporting\n{}", "log lines perhaps"},
		{`{"a": [1]}`, `the entry of state "a" is a JSON list, not an object`},
		{"\xff\xfe{\x00}\x00", "UTF-16"},
	} {
		_, err := chstate.ReadExport(strings.NewReader(tt.text))
		if !errors.Is(err, chstate.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ReadExport(%q): %v, want %s", tt.text, err, tt.want)
		}
	}
}
