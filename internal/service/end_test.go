package service

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However the service ends, it gives back every lock and closes the store.
func TestEveryEndReleases(t *testing.T) {
	for name, finish := range map[string]func(c *talk, cancel func(), parent *atomic.Int64){
		"end of input":   func(c *talk, _ func(), _ *atomic.Int64) { c.in.Close() },
		"shutdown":       func(c *talk, _ func(), _ *atomic.Int64) { c.say(`{"id":9,"op":"shutdown"}`); c.ok(9) },
		"SIGTERM":        func(_ *talk, cancel func(), _ *atomic.Int64) { cancel() },
		"parent is gone": func(_ *talk, _ func(), parent *atomic.Int64) { parent.Store(1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				var parent atomic.Int64
				parent.Store(4711)
				cfg := onStore(f)
				cfg.ParentID = func() int { return int(parent.Load()) }
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := runIn(ctx, t, cfg)
				c.greet()
				c.lock(2, "a")
				c.lock(3, "b")
				c.say(`{"id":4,"op":"lock","state_id":"a"}`)
				synctest.Wait()

				began := time.Now()
				finish(c, cancel, &parent)
				c.end()
				if d := time.Since(began); d > time.Second {
					t.Errorf("the end took %v", d)
				}
				calls := f.called()
				for _, want := range []string{"gave up a", "release a", "release b"} {
					if !slices.Contains(calls, want) {
						t.Errorf("%q is missing from %v", want, calls)
					}
				}
				if calls[len(calls)-1] != "close" {
					t.Errorf("the last call is %q", calls[len(calls)-1])
				}
			})
		})
	}
}

// A container's first process has parent 0, and one whose parent ended before
// it started has 1: only a change counts.
func TestTheParentMayBeInit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := onStore(newFake())
		cfg.ParentID = func() int { return 1 }
		c := run(t, cfg)
		c.greet()
		time.Sleep(time.Minute)
		c.say(`{"id":2,"op":"ping"}`)
		c.ok(2)
		c.end()
	})
}

func TestAWriteUnderWayMayFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.beforeSet = func(ctx context.Context) error {
			select {
			case <-time.After(200 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c := serve(t, f)
		c.lock(2, "a")
		c.say(`{"id":3,"op":"set","state_id":"a","hold":1,"completed":"{}"}`)
		synctest.Wait()
		c.end()
		if _, ok := f.states["a"]; !ok {
			t.Error("the write was cut off")
		}
	})
}

// A server that does not answer cannot keep the process.
func TestTheEndIsBounded(t *testing.T) {
	for name, hang := range map[string]func(*fake, <-chan struct{}){
		"write":   func(f *fake, c <-chan struct{}) { f.beforeSet = func(context.Context) error { <-c; return nil } },
		"release": func(f *fake, c <-chan struct{}) { f.beforeRelease = func() { <-c } },
		"close":   func(f *fake, c <-chan struct{}) { f.beforeClose = func() { <-c } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				answer := make(chan struct{})
				hang(f, answer)
				c := serve(t, f)
				c.lock(2, "a")
				c.say(`{"id":3,"op":"set","state_id":"a","hold":1}`)
				synctest.Wait()
				began := time.Now()
				c.end()
				if d := time.Since(began); d > 1500*time.Millisecond {
					t.Errorf("the end took %v", d)
				}
				close(answer)
			})
		})
	}
}
