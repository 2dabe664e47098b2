package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync"
	"testing"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

func TestMain(m *testing.M) { chtest.Clean(m) }

// talk is a conversation with a running service.
type talk struct {
	t     testing.TB
	in    *io.PipeWriter
	lines *bufio.Reader
	kept  []message
	ended chan error
}

// message is any line that the service sends.
type message struct {
	ID       uint64            `json:"id"`
	OK       map[string]any    `json:"ok"`
	Error    *failure          `json:"error"`
	Chunk    []json.RawMessage `json:"chunk"`
	Event    string            `json:"event"`
	Hold     uint64            `json:"hold"`
	Protocol int               `json:"protocol"`
	Version  string            `json:"version"`
}

// run starts a service; the test ends it, or its end does.
func run(t testing.TB, cfg Config) *talk {
	t.Helper()
	return runIn(t.Context(), t, cfg)
}

func runIn(ctx context.Context, t testing.TB, cfg Config) *talk {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	c := &talk{t: t, in: inWrite, lines: bufio.NewReader(outRead), ended: make(chan error, 1)}
	go func() {
		err := Run(ctx, inRead, outWrite, io.Discard, cfg)
		inRead.Close()
		outWrite.Close()
		c.ended <- err
	}()
	t.Cleanup(func() {
		inWrite.Close()
		_, _ = io.Copy(io.Discard, outRead)
		outRead.Close()
	})
	return c
}

// serve starts a service on the store, past its greeting and init.
func serve(t testing.TB, store Store) *talk {
	t.Helper()
	c := run(t, onStore(store))
	c.greet()
	return c
}

func onStore(store Store) Config {
	return Config{Version: "9.9", Open: func(Init, *slog.Logger) (Store, error) { return store, nil }}
}

func (c *talk) greet() {
	c.t.Helper()
	if m := c.hear(); m.Protocol != Protocol || m.Version != "9.9" {
		c.t.Fatalf("first line: %+v", m)
	}
	c.say(`{"id":1,"op":"init","uri":"clickhouse://u:p@h/d","settings":{}}`)
	c.ok(1)
}

func (c *talk) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatalf("say %s: %v", line, err)
	}
}

// hear gives the next message.
func (c *talk) hear() message {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("no more messages: %v", err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Fatalf("not JSON: %q", line)
	}
	return m
}

// answer gives the next message to a request, keeping others for later.
func (c *talk) answer(id uint64) message {
	c.t.Helper()
	for i, m := range c.kept {
		if m.ID == id {
			c.kept = append(c.kept[:i], c.kept[i+1:]...)
			return m
		}
	}
	for {
		m := c.hear()
		if m.ID == id && m.Event == "" {
			return m
		}
		c.kept = append(c.kept, m)
	}
}

func (c *talk) ok(id uint64) map[string]any {
	c.t.Helper()
	m := c.answer(id)
	if m.Error != nil || m.OK == nil {
		c.t.Fatalf("request %d: error %+v, ok %v", id, m.Error, m.OK)
	}
	return m.OK
}

func (c *talk) fails(id uint64, code string) failure {
	c.t.Helper()
	m := c.answer(id)
	if m.Error == nil || m.Error.Code != code {
		c.t.Fatalf("request %d: error %+v, want %q", id, m.Error, code)
	}
	return *m.Error
}

func (c *talk) lock(id uint64, stateID string) uint64 {
	c.t.Helper()
	c.say(fmt.Sprintf(`{"id":%d,"op":"lock","state_id":%q}`, id, stateID))
	return uint64(c.ok(id)["hold"].(float64))
}

// fake is a store in memory whose steps the tests can hold up.
type fake struct {
	mu       sync.Mutex
	states   map[string]chstate.State
	calls    []string
	taken    map[string]chan struct{} // the lock of each id: full while it is held
	revision uint64                   // of every state, for a hold

	beforeGet     func(ctx context.Context) error
	beforeSet     func(ctx context.Context) error
	beforeRelease func()
	beforeClose   func()
	all           iter.Seq2[chstate.State, error]
	lost          map[string]context.CancelCauseFunc
}

func newFake() *fake {
	return &fake{
		states: map[string]chstate.State{}, taken: map[string]chan struct{}{},
		lost: map[string]context.CancelCauseFunc{},
	}
}

func (f *fake) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

func (f *fake) called() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (f *fake) Warm(context.Context) error    { return nil }
func (f *fake) Prepare(context.Context) error { return nil }

func (f *fake) Get(ctx context.Context, id string) (chstate.State, error) {
	if f.beforeGet != nil {
		if err := f.beforeGet(ctx); err != nil {
			return chstate.State{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	st, ok := f.states[id]
	if !ok {
		return st, chstate.ErrNoState
	}
	return st, nil
}

func (f *fake) Set(ctx context.Context, st chstate.State) error {
	if f.beforeSet != nil {
		if err := f.beforeSet(ctx); err != nil {
			return err
		}
	}
	f.note("set %s", st.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.states[st.ID] = st
	return nil
}

func (f *fake) Delete(_ context.Context, id string) error {
	f.note("delete %s", id)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.states, id)
	return nil
}

func (f *fake) IDs(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for st, err := range f.All(ctx, pattern) {
			if !yield(st.ID, err) {
				return
			}
		}
	}
}

func (f *fake) All(context.Context, string) iter.Seq2[chstate.State, error] { return f.all }

func (f *fake) SetAll(ctx context.Context, states iter.Seq2[chstate.State, error]) (n int, err error) {
	for st, err := range states {
		if err == nil {
			err = f.Set(ctx, st)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (f *fake) ClearAll(context.Context) (int, error) { f.note("clear_all"); return len(f.states), nil }
func (f *fake) Migrate(context.Context) error         { f.note("migrate"); return nil }

func (f *fake) Close() error {
	if f.beforeClose != nil {
		f.beforeClose()
	}
	f.note("close")
	return nil
}

func (f *fake) Lock(ctx context.Context, id string) (Hold, error) {
	f.mu.Lock()
	seat := f.taken[id]
	if seat == nil {
		seat = make(chan struct{}, 1)
		f.taken[id] = seat
	}
	f.mu.Unlock()
	select {
	case seat <- struct{}{}:
	case <-ctx.Done():
		f.note("gave up %s", id)
		return nil, ctx.Err()
	}
	h := &fakeHold{f: f, id: id}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	f.note("lock %s", id)
	f.mu.Lock()
	f.lost[id] = h.cancel
	f.mu.Unlock()
	return h, nil
}

type fakeHold struct {
	f      *fake
	id     string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (h *fakeHold) Context() context.Context { return h.ctx }

func (h *fakeHold) Known() (st chstate.State, revision uint64) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	return h.f.states[h.id], h.f.revision
}

func (h *fakeHold) Get(ctx context.Context) (chstate.State, error) {
	h.f.note("held get %s", h.id)
	return h.f.Get(ctx, h.id)
}

func (h *fakeHold) Set(ctx context.Context, st chstate.State) error {
	if err := context.Cause(h.ctx); err != nil {
		return err
	}
	h.f.note("held set %s", h.id)
	return h.f.Set(ctx, st)
}

func (h *fakeHold) Delete(ctx context.Context) error {
	h.f.note("held delete %s", h.id)
	return h.f.Delete(ctx, h.id)
}

func (h *fakeHold) Release() {
	if h.f.beforeRelease != nil {
		h.f.beforeRelease()
	}
	h.f.note("release %s", h.id)
	h.cancel(errors.New("released"))
	<-h.f.taken[h.id]
}
