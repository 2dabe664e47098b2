package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/lock"
)

// The text of a half is not touched: key order, number literals, escapes and
// Python's NaN come back as they went.
func TestHalvesAreNotTouched(t *testing.T) {
	c := serve(t, newFake())
	half := `{"z": 1.0, "a": 9007199254740993, "e": 1e22, "s": "\u00e9\ud83d\ude00<&>", "n": NaN}`
	req, err := json.Marshal(map[string]any{"id": 2, "op": "set", "state_id": "a", "completed": half})
	if err != nil {
		t.Fatal(err)
	}
	c.say(string(req))
	c.ok(2)
	c.say(`{"id":3,"op":"get","state_id":"a"}`)
	st := c.ok(3)["state"].(map[string]any)
	if st["id"] != "a" || st["partial"] != nil || st["completed"] != half {
		t.Errorf("got %v", st)
	}
	c.say(`{"id":4,"op":"get","state_id":"b"}`)
	if st := c.ok(4)["state"]; st != nil {
		t.Errorf("a state that is not there: %v", st)
	}
}

func TestSimpleCalls(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	for i, op := range []string{"ping", "ensure", "migrate", "clear_all", "delete"} {
		c.say(fmt.Sprintf(`{"id":%d,"op":%q,"state_id":"x"}`, 10+i, op))
		c.ok(uint64(10 + i))
	}
	if diff := cmp.Diff([]string{"migrate", "clear_all", "delete x"}, f.called()); diff != "" {
		t.Error(diff)
	}
}

func TestInitIsGivenTheSettings(t *testing.T) {
	var got Init
	c := run(t, Config{Open: func(in Init, _ *slog.Logger) (Store, error) { got = in; return newFake(), nil }})
	c.hear()
	c.say(`{"id":1,"op":"init","uri":"clickhouse://u:p@h/d","command":"meltano run a b","log_level":"DEBUG",` +
		`"settings":{"port":8123,"secure":true,"table":"t","lock_wait_seconds":"2.5","user":null}}`)
	c.ok(1)
	want := Init{URI: "clickhouse://u:p@h/d", Command: "meltano run a b", Settings: map[string]any{
		"port": json.Number("8123"), "secure": true, "table": "t", "lock_wait_seconds": "2.5", "user": nil,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c.say(`{"id":2,"op":"init"}`)
	c.fails(2, codeProtocol)
}

func TestRequestsThatCannotBeServed(t *testing.T) {
	c := run(t, Config{Open: func(Init, *slog.Logger) (Store, error) {
		return nil, &chstate.Error{Kind: chstate.ErrSettings, Reason: "the port is wrong"}
	}})
	c.hear()
	c.say(`{"id":1,"op":"get","state_id":"a"}`)
	c.fails(1, codeProtocol) // before init
	c.say(`{"id":2,"op":"init","uri":"x"}`)
	c.fails(2, codeSettings)
	c.say(`{"id":3,"op":"get","state_id":"a"}`)
	if f := c.fails(3, codeSettings); f.Message != "the port is wrong" {
		t.Errorf("what init failed with is not what calls fail with: %q", f.Message)
	}

	c = serve(t, newFake())
	c.say(`{"id":4,"op":"dance"}`)
	c.fails(4, codeProtocol)
	c.say(`{"id":5,`)
	c.fails(0, codeProtocol)
	c.say(`{"id":6,"op":"ping"}`)
	c.ok(6)
}

func TestErrorsKeepTheirKindAndHolder(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	locked := &chstate.LockedError{
		ID: "a", ClaimID: "!1", Since: since, Holder: lock.Holder{Host: "h", PID: 7, User: "u", Command: "c"},
	}
	for _, tt := range []struct {
		err  error
		code string
	}{
		{locked, codeLocked},
		{fmt.Errorf("x: %w", chstate.ErrLockLost), codeLockLost},
		{&chstate.Error{Kind: chstate.ErrConnect, Reason: "r"}, codeConnect},
		{&chstate.Error{Kind: chstate.ErrInvalid, Reason: "r"}, codeInvalid},
		{&chstate.Error{Kind: chstate.ErrCorrupt, Reason: "r"}, codeCorrupt},
		{&chstate.Error{Kind: chstate.ErrServer, Reason: "r"}, codeServer},
		{chstate.ErrClosed, codeCancelled},
		{context.Canceled, codeCancelled},
		{errors.New("odd"), codeOther},
	} {
		f := newFake()
		f.beforeGet = func(context.Context) error { return tt.err }
		c := serve(t, f)
		c.say(`{"id":2,"op":"get","state_id":"a"}`)
		got := c.fails(2, tt.code)
		want := tt.err.Error()
		if errors.Is(tt.err, context.Canceled) {
			want = calledOff
		}
		if got.Message != want {
			t.Errorf("message %q, want %q", got.Message, want)
		}
		if tt.code == codeLocked {
			want := &holder{Host: "h", PID: 7, User: "u", Command: "c", ClaimID: "!1", Since: since}
			if diff := cmp.Diff(want, got.Holder); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestASlowCallHoldsUpNoOther(t *testing.T) {
	f := newFake()
	go_ := make(chan struct{})
	f.beforeGet = func(context.Context) error { <-go_; return nil }
	c := serve(t, f)
	c.say(`{"id":2,"op":"get","state_id":"a"}`)
	c.say(`{"id":3,"op":"ping"}`)
	c.ok(3)
	c.say(`{"id":2,"op":"ping"}`) // an id that is in use
	c.fails(2, codeProtocol)
	close(go_)
	c.ok(2)
}

func TestCallsUnderAHold(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	n := c.lock(2, "a")
	c.say(fmt.Sprintf(`{"id":3,"op":"set","state_id":"a","hold":%d,"completed":"{}"}`, n))
	c.ok(3)
	c.say(fmt.Sprintf(`{"id":4,"op":"get","state_id":"a","hold":%d}`, n))
	c.ok(4)
	c.say(fmt.Sprintf(`{"id":5,"op":"delete","state_id":"a","hold":%d}`, n))
	c.ok(5)
	c.say(fmt.Sprintf(`{"id":6,"op":"set","state_id":"b","hold":%d}`, n))
	c.fails(6, codeLockLost) // the hold of another id
	c.say(fmt.Sprintf(`{"op":"release","hold":%d}`, n))
	c.say(fmt.Sprintf(`{"id":7,"op":"set","state_id":"a","hold":%d}`, n))
	c.fails(7, codeLockLost)
	c.lock(8, "a")
	want := []string{
		"lock a", "held set a", "set a", "held get a", "held delete a", "delete a", "release a", "lock a",
	}
	if diff := cmp.Diff(want, f.called()); diff != "" {
		t.Error(diff)
	}
}

// Under a hold, answers tell the revision that is stored where the store knows
// it, and none where it would have to ask.
func TestRevisionsAreTold(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	told := func(id uint64, want any) {
		t.Helper()
		if got := c.ok(id)["revision"]; got != want {
			t.Errorf("answer %d tells revision %v, want %v", id, got, want)
		}
	}
	is := func(revision uint64) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.states["a"], f.revision = chstate.State{ID: "a"}, revision
	}
	c.say(`{"id":2,"op":"lock","state_id":"a"}`)
	told(2, nil)
	is(12)
	c.say(`{"id":3,"op":"get","state_id":"a","hold":1}`)
	told(3, 12.)
	c.say(`{"id":4,"op":"get","state_id":"a"}`)
	told(4, nil) // without a lock it may be another one at any moment
	c.say(`{"id":5,"op":"set","state_id":"a","hold":1,"completed":"{}"}`)
	told(5, 12.)
	is(0)
	c.say(`{"id":6,"op":"set","state_id":"a","hold":1,"completed":"{}"}`)
	told(6, nil)
	c.say(`{"op":"release","hold":1}`)
	is(7)
	c.say(`{"id":7,"op":"lock","state_id":"a"}`)
	told(7, 7.)
}

// A call under a hold that another thread of the caller gives back meanwhile is
// done, or told that the lock is not held: never what the lock itself says then.
func TestCallsThatCrossARelease(t *testing.T) {
	c := serve(t, newFake())
	id, done, refused := uint64(2), 0, 0
	for range 300 {
		n := c.lock(id, "a")
		const calls = 8
		for i := range uint64(calls) {
			c.say(fmt.Sprintf(`{"id":%d,"op":"set","state_id":"a","hold":%d}`, id+1+i, n))
		}
		c.say(fmt.Sprintf(`{"op":"release","hold":%d}`, n))
		for i := range uint64(calls) {
			switch a := c.answer(id + 1 + i); {
			case a.Error == nil:
				done++
			case a.Error.Code == codeLockLost:
				refused++
			default:
				t.Fatalf("set under a hold: %s: %s", a.Error.Code, a.Error.Message)
			}
		}
		id += 1 + calls
	}
	if done == 0 || refused == 0 {
		t.Errorf("%d done, %d refused: nothing has crossed", done, refused)
	}
}

// The caller does not wait for its release, but its next lock does.
func TestTheNextLockComesAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.beforeRelease = func() { time.Sleep(time.Second) }
		c := serve(t, f)
		n := c.lock(2, "a")
		began := time.Now()
		c.say(fmt.Sprintf(`{"op":"release","hold":%d}`, n))
		c.lock(3, "b")
		if time.Since(began) != 0 {
			t.Errorf("the lock of another id waited for %v", time.Since(began))
		}
		c.lock(4, "a")
		if time.Since(began) != time.Second {
			t.Errorf("the lock came after %v, the release takes 1 s", time.Since(began))
		}
		f.beforeRelease = nil
		c.end()
	})
}

// end ends the conversation and waits for the service.
func (c *talk) end() {
	c.t.Helper()
	c.in.Close()
	_, _ = io.Copy(io.Discard, c.lines)
	if err := <-c.ended; err != nil {
		c.t.Errorf("Run: %v", err)
	}
}

func TestAWaitThatIsGivenUp(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	n := c.lock(2, "a")
	c.say(`{"id":3,"op":"lock","state_id":"a"}`)
	c.say(`{"op":"cancel","of":3}`)
	c.fails(3, codeCancelled)
	c.say(fmt.Sprintf(`{"op":"release","hold":%d}`, n))
	c.lock(4, "a")
}

// The answer and the cancellation cross: nobody knows of the hold, so it goes.
func TestALockGrantedToARequestThatIsGivenUp(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	c.lock(2, "a")
	c.say(`{"op":"cancel","of":2}`)
	c.lock(3, "a")
	if diff := cmp.Diff([]string{"lock a", "release a", "lock a"}, f.called()); diff != "" {
		t.Error(diff)
	}
}

func TestLossOfALockIsTold(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	n := c.lock(2, "a")
	f.mu.Lock()
	lose := f.lost["a"]
	f.mu.Unlock()
	lose(&chstate.Error{Kind: chstate.ErrLockLost, Reason: "too late"})
	m := c.hear()
	if m.Event != "lost" || m.Hold != n || m.Error == nil || m.Error.Code != codeLockLost || m.Error.Message != "too late" {
		t.Errorf("got %+v", m)
	}
	c.say(fmt.Sprintf(`{"id":3,"op":"set","state_id":"a","hold":%d}`, n))
	c.fails(3, codeLockLost)
}

// However many states there are, no more is read than the caller asks for.
func TestAStreamWaitsForItsReader(t *testing.T) {
	f := newFake()
	var read atomic.Int64
	f.all = func(yield func(chstate.State, error) bool) {
		for i := range 10_000 {
			read.Add(1)
			if !yield(chstate.State{ID: fmt.Sprintf("%05d", i), Completed: json.RawMessage(`{"v":1}`)}, nil) {
				return
			}
		}
	}
	c := serve(t, f)
	c.say(`{"id":2,"op":"all"}`)
	n := 0
	for range chunksAhead {
		n += len(c.answer(2).Chunk)
	}
	c.say(`{"id":3,"op":"ping"}`)
	c.ok(3)
	if limit := int64((chunksAhead + 1) * chunkStates); read.Load() > limit {
		t.Errorf("%d states were read, %d asked for", read.Load(), n)
	}
	for {
		c.say(`{"op":"more","of":2}`)
		m := c.answer(2)
		if m.OK != nil {
			break
		}
		n += len(m.Chunk)
	}
	if n != 10_000 {
		t.Errorf("%d states came", n)
	}

	c.say(`{"id":4,"op":"ids"}`)
	var first string
	if err := json.Unmarshal(c.answer(4).Chunk[0], &first); err != nil || first != "00000" {
		t.Errorf("first id %q, %v", first, err)
	}
	c.say(`{"op":"cancel","of":4}`)
	m := c.answer(4)
	if m.Chunk != nil { // the second chunk, which was on its way
		m = c.answer(4)
	}
	if m.Error == nil || m.Error.Code != codeCancelled {
		t.Errorf("after the cancellation: %+v", m)
	}
}

func TestAChunkIsBoundedInBytes(t *testing.T) {
	f := newFake()
	big := json.RawMessage(`{"v":"` + strings.Repeat("x", chunkBytes) + `"}`)
	f.all = func(yield func(chstate.State, error) bool) {
		_ = yield(chstate.State{ID: "a", Partial: big}, nil) && yield(chstate.State{ID: "b", Completed: big}, nil)
	}
	c := serve(t, f)
	c.say(`{"id":2,"op":"all"}`)
	for range 2 {
		if n := len(c.answer(2).Chunk); n != 1 {
			t.Errorf("%d states in a chunk", n)
		}
	}
	c.ok(2)
}

func TestBytesThatJSONCannotCarryAreRefused(t *testing.T) {
	f := newFake()
	f.states["a"] = chstate.State{ID: "a", Completed: json.RawMessage("{\"k\":\"\xff\"}")}
	f.all = func(yield func(chstate.State, error) bool) { yield(chstate.State{ID: "\xff"}, nil) }
	c := serve(t, f)
	c.say(`{"id":2,"op":"get","state_id":"a"}`)
	if f := c.fails(2, codeCorrupt); !strings.Contains(f.Message, `state "a"`) {
		t.Errorf("the state is not named: %s", f.Message)
	}
	c.say(`{"id":3,"op":"ids"}`)
	c.fails(3, codeCorrupt)
}

func TestSetAllBeginsWithTheLastState(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	c.say(`{"id":2,"op":"set_all"}`)
	c.say(`{"op":"put","of":2,"states":[{"id":"a"},{"id":"b"}]}`)
	c.say(`{"id":3,"op":"ping"}`)
	c.ok(3)
	if calls := f.called(); len(calls) != 0 {
		t.Errorf("written before the last state came: %v", calls)
	}
	c.say(`{"op":"put","of":2,"states":[{"id":"c"}]}`)
	c.say(`{"op":"put","of":2,"last":true}`)
	if n := c.ok(2)["count"]; n != 3.0 {
		t.Errorf("count %v", n)
	}

	c.say(`{"id":4,"op":"set_all"}`)
	c.say(`{"op":"put","of":4,"states":[{"id":"d"}]}`)
	c.say(`{"op":"cancel","of":4}`)
	c.say(`{"op":"put","of":4,"last":true}`)
	c.say(`{"id":5,"op":"ping"}`)
	c.ok(5)
	if slices.Contains(f.called(), "set d") {
		t.Error("a set_all that was given up was written")
	}
}
