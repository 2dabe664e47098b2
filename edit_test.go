package chstate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

func TestReplace(t *testing.T) {
	s := newStore(t)
	first := chstate.State{ID: "a", Completed: raw(`{"n":1}`)}
	must(t, s.Replace(t.Context(), chstate.State{}, first))
	if err := s.Replace(t.Context(), chstate.State{}, first); !errors.Is(err, chstate.ErrChanged) {
		t.Errorf("a state that was not there before: %v", err)
	}
	was, err := s.Get(t.Context(), "a")
	must(t, err)
	must(t, s.Replace(t.Context(), was, chstate.State{ID: "a", Completed: raw(`{"n":2}`)}))
	if err := s.Replace(t.Context(), was, chstate.State{ID: "a", Completed: raw(`{"n":3}`)}); !errors.Is(err, chstate.ErrChanged) {
		t.Errorf("over a newer state: %v", err)
	}
	must(t, s.Delete(t.Context(), "a"))
	if err := s.Replace(t.Context(), was, first); !errors.Is(err, chstate.ErrChanged) {
		t.Errorf("over a state that was deleted: %v", err)
	}
	if err := s.Replace(t.Context(), chstate.State{}, chstate.State{ID: "a", Completed: raw(`[]`)}); !errors.Is(err, chstate.ErrInvalid) {
		t.Errorf("a list as a state: %v", err)
	}
	wantVersions(t, s, "a", `{"n":2} delete`, `{"n":1} set`)
}

func TestReset(t *testing.T) {
	s := newStore(t)
	must(t, s.Set(t.Context(), chstate.State{ID: "a", Partial: raw(halfDone), Completed: raw(finished)}))
	must(t, s.Reset(t.Context(), "a", "s"))
	wantState(t, s, "a", `{"singer_state":{"bookmarks":{}}}`, `{"singer_state":{"bookmarks":{"t":9007199254740993}}}`)

	// All of them or none.
	err := s.Reset(t.Context(), "a", "t", "users")
	if !errors.Is(err, chstate.ErrNoState) || !strings.Contains(err.Error(), `no bookmark of stream "users"`) || !strings.Contains(err.Error(), "it has t") {
		t.Errorf("a stream that is not there: %v", err)
	}
	wantState(t, s, "a", `{"singer_state":{"bookmarks":{}}}`, `{"singer_state":{"bookmarks":{"t":9007199254740993}}}`)
	if err := s.Reset(t.Context(), "nothing", "s"); !errors.Is(err, chstate.ErrNoState) {
		t.Errorf("a state that is not there: %v", err)
	}
}

func TestBookmarksAndDiff(t *testing.T) {
	st := chstate.State{ID: "a", Partial: raw(`{"singer_state":{"bookmarks":{"s":{"replication_key":"at","replication_key_value":"2026-01-02T03:04:05+02:00"}}}}`), Completed: raw(finished)}
	marks, err := st.Bookmarks()
	must(t, err)
	if len(marks) != 2 || marks[0].Key != "at" || marks[1].Stream != "t" {
		t.Fatalf("got %+v", marks)
	}
	at, ok := marks[0].Time()
	if !ok || at.UTC().Format("15:04") != "01:04" {
		t.Errorf("the time is %v, %v", at, ok)
	}
	for _, value := range []string{`9007199254740993`, `"users"`, `{}`, ``} {
		if at, ok := (chstate.Bookmark{Value: raw(value)}).Time(); ok {
			t.Errorf("%s was taken for %v", value, at)
		}
	}
	for _, value := range []string{`"2026-01-02"`, `"2026-01-02 03:04:05.123456"`, `"2026-01-02T03:04:05.1+0200"`, `"2026-01-02T03:04:05Z"`} {
		if _, ok := (chstate.Bookmark{Value: raw(value)}).Time(); !ok {
			t.Errorf("%s was not taken for a time", value)
		}
	}
	changes, err := chstate.Diff(chstate.State{ID: "a", Completed: raw(finished)}, st)
	must(t, err)
	if len(changes) != 2 || changes[0].Path != "replication_key" || changes[1].Stream != "s" {
		t.Errorf("got %+v", changes)
	}
	bad := chstate.State{ID: "bad", Completed: raw(`"x"`)}
	if _, err := chstate.Diff(st, bad); !errors.Is(err, chstate.ErrCorrupt) {
		t.Errorf("a diff with what is no state: %v", err)
	}
	if _, err := bad.Bookmarks(); !errors.Is(err, chstate.ErrCorrupt) {
		t.Errorf("bookmarks of what is no state: %v", err)
	}
}

func TestAges(t *testing.T) {
	o := options(t)
	s := open(t, o)
	if got, err := s.Ages(t.Context(), ""); err != nil || len(got) != 0 {
		t.Errorf("ages of nothing: %v, %v", got, err)
	}
	must(t, s.Set(t.Context(), chstate.State{ID: "b", Completed: raw(finished)}))
	chtest.SQL(t, "INSERT INTO "+o.Schema+".state (state_id, updated_at) VALUES ('a', now64(3) - 3600), ('c', now64(3))")
	got, err := s.Ages(t.Context(), "[ab]")
	must(t, err)
	if len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
		t.Fatalf("got %+v", got)
	}
	if old := got[0].Age; old < time.Hour || old > time.Hour+time.Minute || got[1].Age > time.Minute {
		t.Errorf("ages: %+v", got)
	}
	now, err := s.Now(t.Context())
	must(t, err)
	if age := now.Sub(got[0].UpdatedAt); age < got[0].Age {
		t.Errorf("the clock is at %s, an hour after %s", now, got[0].UpdatedAt)
	}
}
