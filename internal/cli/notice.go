package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// notices is a slog.Handler that writes for people: "chstate: message key=value",
// one line each, without time and level.
type notices struct {
	w     io.Writer
	least slog.Level
	mu    *sync.Mutex
	attrs string // of With, already written out
}

func newNotices(w io.Writer, verbose bool) *slog.Logger {
	h := notices{w: w, mu: new(sync.Mutex), least: slog.LevelInfo}
	if verbose {
		h.least = slog.LevelDebug
	}
	return slog.New(h)
}

func (h notices) Enabled(_ context.Context, level slog.Level) bool { return level >= h.least }

func (h notices) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "chstate: %s%s", oneLine(r.Message), h.attrs)
	r.Attrs(func(at slog.Attr) bool {
		writeAttr(&b, at)
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

func (h notices) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, at := range attrs {
		writeAttr(&b, at)
	}
	h.attrs = b.String()
	return h
}

// WithGroup leaves the names as they are: the library uses no groups.
func (h notices) WithGroup(string) slog.Handler { return h }

func writeAttr(b *strings.Builder, at slog.Attr) {
	v := at.Value.Resolve().String()
	if strings.ContainsAny(v, " \t\r\n\"=") {
		v = fmt.Sprintf("%q", v)
	}
	fmt.Fprintf(b, " %s=%s", at.Key, v)
}
