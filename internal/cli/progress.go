package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/chstate/chstate"
)

// worthBar is how many states are worth a bar.
const worthBar = 10_000

// bar shows on a terminal how far a long command is. A nil *bar shows nothing.
type bar struct {
	w     io.Writer
	what  string
	total int // 0: as it is told
	drawn time.Time
}

// newBar gives nil where messages do not go to a terminal.
func (a *app) newBar(what string) *bar {
	if !isTerminal(a.stderr) {
		return nil
	}
	return &bar{w: a.stderr, what: what}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// apply lets a store tell the bar.
func (b *bar) apply(o *chstate.Options) {
	if b != nil {
		o.Progress = b.show
	}
}

// show draws the bar, ten times a second at most; it takes the place of the one before.
func (b *bar) show(done, total int) {
	if total == 0 {
		total = b.total
	}
	if total < worthBar || time.Since(b.drawn) < 100*time.Millisecond {
		return
	}
	b.drawn = time.Now()
	const width = 30
	full := min(done*width/total, width)
	fmt.Fprintf(b.w, "\r%s [%s%s] %d of %d ", b.what, strings.Repeat("#", full), strings.Repeat("-", width-full), done, total)
}

// clear takes the bar off the terminal.
func (b *bar) clear() {
	if b != nil && !b.drawn.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = time.Time{}
	}
}
