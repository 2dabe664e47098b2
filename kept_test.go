package chstate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// A stream of partial updates reads the state once; each is merged onto the
// one before, also across holds that follow each other.
func TestPartialUpdatesReadOnce(t *testing.T) {
	o, p := proxied(t)
	var reads atomic.Int32
	p.On(func(_ http.ResponseWriter, r faultproxy.Request) bool {
		if strings.HasPrefix(r.Text, "SELECT") && strings.Contains(r.Text, "`.`state` FINAL") {
			reads.Add(1)
		}
		return false
	})
	s := open(t, o)
	must(t, s.Update(t.Context(), chstate.State{ID: "p", Completed: raw(`{"done":1}`)}))
	reads.Store(0)
	for i := range 5 {
		must(t, s.Update(t.Context(), chstate.State{ID: "p", Partial: raw(fmt.Sprintf(`{"s%d":%d}`, i, i))}))
	}
	if n := reads.Load(); n > 1 { // once more when they take longer than a second
		t.Errorf("the state was read %d times", n)
	}
	reads.Store(0)
	time.Sleep(1100 * time.Millisecond)
	must(t, s.Update(t.Context(), chstate.State{ID: "p", Partial: raw(`{"late":1}`)}))
	if reads.Load() != 1 {
		t.Error("after a second the state is not read anew")
	}
	wantState(t, open(t, o), "p", `{"s0":0,"s1":1,"s2":2,"s3":3,"s4":4,"late":1}`, `{"done":1}`)
}

// What a hold knows is changed by nothing that its caller does with the bytes.
func TestKnownIsACopy(t *testing.T) {
	s := open(t, options(t))
	h, err := s.Lock(t.Context(), "p")
	must(t, err)
	defer h.Release()
	if _, revision := h.Known(); revision != 0 {
		t.Error("known before anything was read")
	}
	text := raw(`{"a":1}`)
	must(t, h.Set(t.Context(), chstate.State{Completed: text}))
	text[2] = 'x'
	st, revision := h.Known()
	if revision == 0 || string(st.Completed) != `{"a":1}` || st.UpdatedAt.IsZero() {
		t.Errorf("known: %+v, %d", st, revision)
	}
	st.Completed[2] = 'y'
	if st, err := h.Get(t.Context()); err != nil || string(st.Completed) != `{"a":1}` {
		t.Errorf("got %s, %v", st.Completed, err)
	}
}

// Writes that take no lock are seen by the next update: those of the same
// store at once, those of others after a second.
func TestUnlockedWritesAreSeen(t *testing.T) {
	for name, write := range map[string]func(t *testing.T, s *chstate.Store, o chstate.Options){
		"set": func(t *testing.T, s *chstate.Store, _ chstate.Options) {
			must(t, s.Set(t.Context(), chstate.State{ID: "p", Completed: raw(`{"other":1}`)}))
		},
		"import": func(t *testing.T, s *chstate.Store, _ chstate.Options) {
			_, err := s.SetAll(t.Context(), func(yield func(chstate.State, error) bool) {
				yield(chstate.State{ID: "p", Completed: raw(`{"other":1}`)}, nil)
			})
			must(t, err)
		},
		"another process's set": func(t *testing.T, _ *chstate.Store, o chstate.Options) {
			must(t, open(t, o).Set(t.Context(), chstate.State{ID: "p", Completed: raw(`{"other":1}`)}))
			time.Sleep(1100 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Lock.Linger = 5 * time.Second
			s := open(t, o)
			must(t, s.Update(t.Context(), chstate.State{ID: "p", Completed: raw(`{"mine":1}`)}))
			write(t, s, o)
			must(t, s.Update(t.Context(), chstate.State{ID: "p", Partial: raw(`{"more":1}`)}))
			wantState(t, s, "p", `{"more":1}`, `{"other":1}`)
		})
	}
}

// After a failed write nothing is known, for it may have been done.
func TestAFailedWriteIsNotKnown(t *testing.T) {
	s := open(t, options(t))
	h, err := s.Lock(t.Context(), "p")
	must(t, err)
	defer h.Release()
	must(t, h.Set(t.Context(), chstate.State{Completed: raw(`{"a":1}`)}))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Set(ended, chstate.State{Completed: raw(`{"a":2}`)}); err == nil {
		t.Fatal("a write with a cancelled context succeeded")
	}
	if st, revision := h.Known(); revision != 0 {
		t.Errorf("known: %s", st.Completed)
	}
	must(t, h.Delete(t.Context()))
	if _, revision := h.Known(); revision != 0 {
		t.Error("a deleted state is known")
	}
}

// Replicas that may lag (strategy "settle") do not make a hold forget what it
// wrote. One server cannot lag, so its row is taken away behind the hold's back.
func TestSettleRemembersItsOwnWrites(t *testing.T) {
	o := options(t)
	o.Lock.Strategy, o.Lock.Settle = "settle", 100*time.Millisecond
	s := open(t, o)
	must(t, s.Update(t.Context(), chstate.State{ID: "p", Completed: raw(`{"old":1}`)}))
	h, err := s.Lock(t.Context(), "p")
	must(t, err)
	defer h.Release()
	must(t, h.Set(t.Context(), chstate.State{Completed: raw(`{"new":1}`)}))
	chtest.SQL(t, fmt.Sprintf("DELETE FROM `%s`.state WHERE completed_state = '{\"new\":1}'", o.Schema))
	time.Sleep(1100 * time.Millisecond)
	if st, err := h.Get(t.Context()); err != nil || string(st.Completed) != `{"new":1}` {
		t.Errorf("got %s, %v", st.Completed, err)
	}
}
