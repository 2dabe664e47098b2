package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := &bar{w: &out, what: "exporting", total: 20_000}
	b.show(10_000, 0)
	if got, want := out.String(), "\rexporting [###############---------------] 10000 of 20000 "; got != want {
		t.Errorf("it shows %q, want %q", got, want)
	}
	b.show(10_001, 0) // too soon after the other
	if strings.Count(out.String(), "\r") != 1 {
		t.Errorf("it is drawn too often: %q", out.String())
	}
	b.drawn = b.drawn.Add(-time.Second)
	b.show(30_000, 0) // more than there were: written meanwhile
	if !strings.Contains(out.String(), "["+strings.Repeat("#", 30)+"] 30000 of 20000") {
		t.Errorf("it shows %q", out.String())
	}
	b.clear()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("it is left on the terminal: %q", out.String())
	}

	out.Reset()
	few := &bar{w: &out, what: "importing"}
	few.show(4_000, 5_000)
	few.clear()
	if out.Len() > 0 {
		t.Errorf("few states are not worth %q", out.String())
	}
	// Where no terminal is there is no bar, and all that is done with it does nothing.
	if none := (&app{stderr: &out}).newBar("clearing"); none != nil {
		t.Error("a bar without a terminal")
	} else {
		none.clear()
	}
}
