package clickhouse

import "context"

// places bounds how many statements about states run at once, below what the
// connection pool has room for. The rest of the room is the lock's: where many
// goroutines write, a renewal that stood in line with all of them would come
// too late.
type places chan struct{}

// forLock marks the statements of the lock's log, which need no place.
func forLock(ctx context.Context) context.Context {
	return context.WithValue(ctx, lockKey{}, true)
}

type lockKey struct{}

// take waits for a place. The function that it gives leaves it. A stream takes
// none: its reader may do other work with every row.
func (p places) take(ctx context.Context, what purpose) (leave func(), err error) {
	if what == forStream || ctx.Value(lockKey{}) != nil {
		return func() {}, nil
	}
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
