package server

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// turns let so many statements run at once as the processors can do something
// for; the others wait in line. Each statement is a handful of threads: with two
// hundred at once those get in each other's way, so that all of them take longer
// and some take for ever, and the engine's own merges get no turn.
type turns chan struct{}

// turnTime is how long a statement keeps its turn. One that takes longer (it
// sleeps, waits for a mutation or for a slow client) goes on without.
const turnTime = 300 * time.Millisecond

func newTurns() turns { return make(turns, 4*runtime.GOMAXPROCS(0)) }

// take waits for a turn; the function that it gives ends it. Who goes away
// while waiting is told so by its own context.
func (t turns) take(ctx context.Context) (end func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, errGone
	}
	once := sync.OnceFunc(func() { <-t })
	late := time.AfterFunc(turnTime, once)
	return func() { late.Stop(); once() }, nil
}
