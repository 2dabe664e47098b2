package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chstate/chstate/internal/chtest"
)

// engineTests runs the tests beside an engine; the binary also stands in for
// the tool, which must not start one.
type engineTests struct{ *testing.M }

func (m engineTests) Run() int { return chtest.RunClean(m.M) }

func TestMain(m *testing.M) {
	testscript.Main(engineTests{m}, map[string]func(){
		"chstate": func() {
			os.Exit(Main(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// scriptsTime bounds the scripts, which take a tenth of it: one that waits for
// what does not come is told as the line it stands on.
const scriptsTime = 4 * time.Minute

// TestScripts runs testdata/script against the real engine. Beside testscript's
// own commands there are
//
//	exits N COMMAND …   runs a command, which has to end with this code
//	sql STATEMENT       runs a statement past the tool; its answer is stdout
//
// $CASES is the folder of the files that people reported trouble with, $SCHEMA
// a schema that no other script uses, and MELTANO_STATE_BACKEND_URI names both it and the engine.
func TestScripts(t *testing.T) {
	cases, err := filepath.Abs("testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	server := chtest.Target(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			schema := chtest.Schema(t)
			env.Setenv("CASES", cases)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each run of the tool sleeps a second at its end
			env.Setenv("SCHEMA", schema)
			env.Setenv("CH_HOST", server.Host)
			env.Setenv("CH_PORT", strconv.Itoa(server.Port))
			env.Setenv("MELTANO_STATE_BACKEND_URI", server.URI("analytics"))
			env.Setenv("MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA", schema)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"sql": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: sql STATEMENT")
				}
				answer, err := server.Do(args[0])
				ts.Check(err)
				if _, err := ts.Stdout().Write([]byte(answer + "\n")); err != nil {
					ts.Fatalf("%v", err)
				}
			},
		},
		RequireUniqueNames: true,
		Deadline:           time.Now().Add(scriptsTime),
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG …]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v ended with code %d instead of %d", slices.Clone(args[1:]), got, want)
	}
}
