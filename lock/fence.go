package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/chstate/chstate/internal/lockrules"
)

// write sends one write under the lease, with a version above every earlier
// one and above the row that it replaces. hold ends before the lease does.
func (h *lease) write(ctx, hold context.Context, above Millis, send func(context.Context, Millis) error) error {
	ctx, cancel := h.bind(ctx, hold)
	defer cancel()
	if err := h.writing.take(ctx); err != nil {
		return err
	}
	defer h.writing.give()
	v, err := h.nextVersion(ctx, above)
	if err != nil {
		return err
	}
	err = send(ctx, v)
	if err != nil {
		h.notSure()
	}
	if h.left() <= 0 && !h.l.rules.Without(lockrules.Deadline) {
		h.end(errLost(h.key, "ended during a write"))
	}
	if hold.Err() != nil {
		// Done or not, a later holder may not have seen it.
		if err != nil {
			return fmt.Errorf("%w (%w)", context.Cause(hold), err)
		}
		return context.Cause(hold)
	}
	return err
}

// nextVersion takes the version of a write, raising the ceiling first when
// some clock or row is ahead of it.
func (h *lease) nextVersion(ctx context.Context, above Millis) (Millis, error) {
	v, ok := h.tryVersion(above)
	if !ok && h.ctx.Err() == nil {
		if err := h.raise(ctx, v); err != nil {
			return 0, err
		}
		v, ok = h.tryVersion(above)
	}
	if !ok {
		h.end(errLost(h.key, "ended before the write"))
		return 0, context.Cause(h.ctx)
	}
	return v, nil
}

// raise gets a ceiling above v.
func (h *lease) raise(ctx context.Context, v Millis) error {
	h.mu.Lock()
	enough := h.raised > v
	h.mu.Unlock()
	if !enough {
		if err := h.renew(ctx, v); err != nil {
			return err
		}
	}
	return h.look(ctx)
}

// tryVersion takes the next version, when the lease allows it; else it tells
// which version the ceiling was too low for.
func (h *lease) tryVersion(above Millis) (Millis, bool) {
	now := h.l.opts.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	v := max(h.versionAt(now), h.last+1, above+1)
	low := v >= h.ceiling && !h.l.rules.Without(lockrules.CeilingCheck)
	if low || now >= h.deadline && !h.l.rules.Without(lockrules.Deadline) || h.ctx.Err() != nil {
		return v, false
	}
	h.last = v
	return v, true
}

// versionAt reads the version clock; h.mu is held.
func (h *lease) versionAt(now time.Duration) Millis { return h.base.Add(now - h.baseAt) }

// bind gives a context that ends with ctx or with other, whichever is first.
func (h *lease) bind(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() { stop(); cancel(nil) }
}
