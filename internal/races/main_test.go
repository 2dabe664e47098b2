//go:build unix

package races

import (
	"flag"
	"os"
	"testing"

	"github.com/chstate/chstate/internal/chtest"
)

// raceDetector says whether this binary was built with -race.
var raceDetector bool

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child(os.Stdin, os.Stdout))
	}
	flag.Parse()
	// Most of the time is waiting for leases to end: run more tests at once
	// than there are processors.
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	chtest.Main(m)
}
