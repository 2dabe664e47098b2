//go:build unix

package races

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/lock"
)

// goSignal lets all children of a process group go at once.
const goSignal = syscall.SIGUSR1

// childEnv makes the test binary a child.
const childEnv = "CHSTATE_RACES_CHILD"

// setup is the first line that a child reads.
type setup struct {
	Server   chtest.Server
	Schema   string
	Older    bool // be a process of the older plugin
	Lease    time.Duration
	Wait     time.Duration
	Linger   time.Duration
	Settings map[string]string // ClickHouse settings of its session
}

func (s setup) options() chstate.Options {
	return chstate.Options{
		Host: s.Server.Host, Port: s.Server.Port, User: s.Server.User, Password: s.Server.Password, Secure: s.Server.Secure,
		Schema: s.Schema, ServerSettings: s.Settings, Command: "races", Version: "test",
		ConnectTimeout: 2 * time.Second,
		Lock:           chstate.LockOptions{Strategy: "table", Lease: s.Lease, Wait: s.Wait, Linger: s.Linger},
	}
}

// order is what a child is told to do; it answers each with one report.
type order struct {
	Do    string        // warm, lock, read, write, release, add, close
	ID    string        // lock, add
	N     int           // write: the number; add: how often
	Pause time.Duration // add: between two
	Await bool          // add: not before the signal to go
}

// report is an answer (Done), or something that happened meanwhile.
type report struct {
	Done  bool
	Event string `json:",omitempty"` // "lost": the hold ended; "added": see Op
	N     int    `json:",omitempty"`
	Err   string `json:",omitempty"` // "lost", "locked" or "other"
	Text  string `json:",omitempty"` // the error's text
	Op    *op    `json:",omitempty"`
}

// op is one read-add-write, for the checker.
type op struct {
	Call, Return int64  // by a clock that all processes share
	N            int    // what was written, 0 when it did not come to that
	Sure         bool   // it was acknowledged
	Why          string `json:",omitempty"` // it was not
}

// worker does the orders of a child: either ours or the older plugin's way.
type worker interface {
	do(ctx context.Context, o order) (int, error)
	add(ctx context.Context, id string) (n int, err error)
	close() error
}

// child is the main function of a child.
func child(in io.Reader, out io.Writer) int {
	lines := bufio.NewScanner(in)
	var conf setup
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &conf) != nil {
		return 2
	}
	var mu sync.Mutex
	enc := json.NewEncoder(out)
	tell := func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = enc.Encode(r)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, goSignal)
	w, err := newWorker(conf, tell)
	if err != nil {
		tell(failed(err))
		return 1
	}
	ctx, clock := context.Background(), lock.SystemClock()
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return 2
		}
		r := report{}
		switch o.Do {
		case "close":
			r = failed(w.close())
		case "add":
			if o.Await {
				<-signals
			}
			for range o.N {
				op := op{Call: int64(clock.Now())}
				n, err := w.add(ctx, o.ID)
				op.Return, op.N, op.Sure = int64(clock.Now()), n, err == nil
				if err != nil {
					op.Why = err.Error()
				}
				tell(report{Event: "added", Op: &op})
				if err != nil && !errors.Is(err, chstate.ErrLockLost) {
					r = failed(err)
					break
				}
				time.Sleep(o.Pause)
			}
		default:
			n, err := w.do(ctx, o)
			r = failed(err)
			r.N = n
		}
		r.Done = true
		tell(r)
		if o.Do == "close" {
			return 0
		}
	}
	_ = w.close() // the test is gone
	return 0
}

func failed(err error) report {
	switch {
	case err == nil:
		return report{}
	case errors.Is(err, chstate.ErrLockLost):
		return report{Err: "lost", Text: err.Error()}
	case errors.Is(err, chstate.ErrLocked):
		return report{Err: "locked", Text: err.Error()}
	default:
		return report{Err: "other", Text: err.Error()}
	}
}

func newWorker(conf setup, tell func(report)) (worker, error) {
	if conf.Older {
		return &older{server: conf.Server, schema: conf.Schema}, nil
	}
	s, err := chstate.Open(context.Background(), conf.options())
	return &ours{store: s, tell: tell}, err
}

// ours is a worker with a store.
type ours struct {
	store *chstate.Store
	hold  *chstate.Hold
	tell  func(report)
}

func (w *ours) close() error { return w.store.Close() }

func (w *ours) do(ctx context.Context, o order) (int, error) {
	switch o.Do {
	case "warm":
		return 0, w.store.Prepare(ctx)
	case "lock":
		h, err := w.store.Lock(ctx, o.ID)
		if err != nil {
			return 0, err
		}
		w.hold = h
		context.AfterFunc(h.Context(), func() {
			if errors.Is(context.Cause(h.Context()), chstate.ErrLockLost) {
				w.tell(report{Event: "lost"})
			}
		})
		return 0, nil
	case "read":
		return number(w.hold.Get(ctx))
	case "write":
		return o.N, w.hold.Set(ctx, state(o.N))
	case "release":
		w.hold.Release()
		return 0, nil
	}
	return 0, fmt.Errorf("unknown order %q", o.Do)
}

func (w *ours) add(ctx context.Context, id string) (int, error) {
	h, err := w.store.Lock(ctx, id)
	if err != nil {
		return 0, err
	}
	defer h.Release()
	n, err := number(h.Get(ctx))
	if err != nil {
		return 0, err
	}
	return n + 1, h.Set(ctx, state(n+1))
}

type counter struct {
	N int `json:"n"`
}

func number(st chstate.State, err error) (int, error) {
	var c counter
	switch {
	case errors.Is(err, chstate.ErrNoState):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return c.N, errors.Join(json.Unmarshal(st.Completed, &c), nil)
}

func state(n int) chstate.State {
	text, _ := json.Marshal(counter{n})
	return chstate.State{Completed: text}
}
