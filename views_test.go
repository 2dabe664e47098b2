package chstate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

func TestViews(t *testing.T) {
	o := options(t)
	s := open(t, o)
	must(t, s.MakeViews(t.Context()))
	must(t, s.MakeViews(t.Context())) // once more
	must(t, s.Set(t.Context(), chstate.State{ID: "a",
		Completed: raw(`{"singer_state":{"bookmarks":{"users":{"replication_key":"id","replication_key_value":9007199254740993},"bare":"2026-01-01","only":{"at":"é"}}}}`),
		Partial:   raw(`{"singer_state":{"bookmarks":{"users":{"replication_key_value":9007199254740995},"new":{"replication_key":"at","replication_key_value":"2026-02-02"}}}}`)}))
	must(t, s.Set(t.Context(), chstate.State{ID: "a2", Completed: raw(`{"no":"bookmarks"}`)}))
	must(t, s.Set(t.Context(), chstate.State{ID: "a2", Completed: raw(`{"n":2}`)}))
	got := chtest.SQL(t, fmt.Sprintf("SELECT state_id, stream, replication_key, value FROM %s.state_bookmarks ORDER BY state_id, stream", o.Schema))
	const want = "a\tbare\t\t2026-01-01\n" + "a\tnew\tat\t2026-02-02\n" + "a\tonly\t\t{\"at\":\"é\"}\n" + "a\tusers\tid\t9007199254740995"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = chtest.SQL(t, fmt.Sprintf("SELECT state_id, completed_state, partial_state, updated_at > now() - 60 FROM %s.state_current WHERE state_id = 'a2'", o.Schema))
	if want := "a2\t{\"n\":2}\t{}\t1"; got != want {
		t.Errorf("the view of states gives %q, want %q", got, want)
	}

	sql, err := chstate.ViewsSQL(o)
	must(t, err)
	for statement := range strings.SplitSeq(sql, ";\n") {
		if statement = strings.TrimSpace(statement); strings.Contains(statement, "CREATE VIEW") {
			chtest.SQL(t, statement)
		}
	}
	if strings.Count(sql, "GRANT SELECT ON") != 2 {
		t.Errorf("two grants are needed:\n%s", sql)
	}
}

// What only has the name of a view is not replaced by one.
func TestViewsSpareTables(t *testing.T) {
	o := options(t)
	s := open(t, o)
	must(t, s.Prepare(t.Context()))
	chtest.SQL(t, fmt.Sprintf("CREATE TABLE %s.state_current (x UInt8) ENGINE = MergeTree ORDER BY x", o.Schema))
	chtest.SQL(t, fmt.Sprintf("INSERT INTO %s.state_current VALUES (7)", o.Schema))
	if err := s.MakeViews(t.Context()); !errors.Is(err, chstate.ErrServer) || !strings.Contains(err.Error(), "is no view") {
		t.Errorf("got %v", err)
	}
	if got := chtest.SQL(t, fmt.Sprintf("SELECT x FROM %s.state_current", o.Schema)); got != "7" {
		t.Errorf("the table has %q", got)
	}
}
