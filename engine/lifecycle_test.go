package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestReadyLine(t *testing.T) {
	e := sharedEngine(t)
	if !regexp.MustCompile(`^ready http://127\.0\.0\.1:[1-9]\d* ClickHouse \d+\.\d+\.\d+\.\d+\n$`).MatchString(e.ready) {
		t.Errorf("the ready line is %q", e.ready)
	}
	equal(t, "version", e.query(t, "SELECT version()"), strings.Fields(e.ready)[3])
}

func TestTerminateKeepsData(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		data := t.TempDir()
		e := start(t, data, nil)
		e.query(t, "CREATE TABLE t (n UInt32) ENGINE = MergeTree ORDER BY n")
		e.query(t, "INSERT INTO t SELECT number FROM numbers(1000)")
		e.query(t, "DROP TABLE IF EXISTS t2 SYNC")
		took, exit := e.stop(t, signal)
		if took > 2*time.Second {
			t.Errorf("%v took %v", signal, took)
		}
		equal(t, "exit code", exit, 0)
		again := start(t, data, nil)
		equal(t, "rows", again.query(t, "SELECT count(), sum(n) FROM t"), "1000\t499500")
		again.query(t, "DROP TABLE t SYNC")
	}
}

func TestDropSyncOnEmptyFolder(t *testing.T) {
	e := start(t, filepath.Join(t.TempDir(), "made", "as", "needed"), nil)
	e.query(t, "CREATE DATABASE d")
	e.query(t, "CREATE TABLE d.t (n UInt8) ENGINE = MergeTree ORDER BY n")
	client := http.Client{Timeout: 10 * time.Second}
	for _, statement := range []string{"DROP TABLE d.t SYNC", "DROP DATABASE d SYNC"} {
		resp, err := client.Post(e.url, "text/plain", strings.NewReader(statement))
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		equal(t, statement, resp.StatusCode, http.StatusOK)
		_ = resp.Body.Close()
	}
}

func TestTerminateWhileQueriesRun(t *testing.T) {
	data := t.TempDir()
	e := start(t, data, nil)
	e.query(t, "CREATE TABLE t (n UInt32) ENGINE = MergeTree ORDER BY n")
	var acknowledged atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = post(e.url, "SELECT sleepEachRow(1) FROM numbers(60) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 60000000")
	})
	wg.Go(func() {
		for i := 0; ; i++ {
			if _, err := post(e.url, fmt.Sprintf("INSERT INTO t VALUES (%d)", i)); err != nil {
				return
			}
			acknowledged.Add(1)
		}
	})
	time.Sleep(500 * time.Millisecond)
	took, exit := e.stop(t, syscall.SIGTERM)
	wg.Wait()
	if took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	equal(t, "exit code", exit, 0)
	again := start(t, data, nil)
	var n int64
	_, _ = fmt.Sscan(again.query(t, "SELECT count() FROM t"), &n)
	if n < acknowledged.Load() || n > acknowledged.Load()+1 {
		t.Errorf("%d rows, %d acknowledged", n, acknowledged.Load())
	}
}

func TestKillKeepsAcknowledgedRows(t *testing.T) {
	data := t.TempDir()
	e := start(t, data, nil)
	e.query(t, "CREATE TABLE t (n UInt32) ENGINE = MergeTree ORDER BY n")
	var acknowledged atomic.Int64
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				if _, err := post(e.url, fmt.Sprintf("INSERT INTO t VALUES (%d)", i*3+w)); err != nil {
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	time.Sleep(700 * time.Millisecond)
	e.kill()
	wg.Wait()
	if acknowledged.Load() == 0 {
		t.Fatal("nothing was written")
	}
	again := start(t, data, nil)
	var n int64
	_, _ = fmt.Sscan(again.query(t, "SELECT uniqExact(n) FROM t"), &n)
	if n < acknowledged.Load() || n > acknowledged.Load()+3 {
		t.Errorf("%d rows, %d acknowledged", n, acknowledged.Load())
	}
	left, err := os.ReadDir(filepath.Join(data, "chstate-engine.spool"))
	must(t, err)
	equal(t, "files left", len(left), 0)
}

func TestFolderInUse(t *testing.T) {
	data := t.TempDir()
	e := start(t, data, nil)
	cmd := exec.Command(program, "serve", "--data", data, "--listen", "127.0.0.1:0")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("a second engine runs on the same folder")
	}
	equal(t, "exit code", cmd.ProcessState.ExitCode(), 1)
	contains(t, "message", string(out), data, "is in use", fmt.Sprintf("process %d", e.cmd.Process.Pid), "--data")
	equal(t, "the first one", e.query(t, "SELECT 1"), "1")
}

func TestPortInUse(t *testing.T) {
	e := sharedEngine(t)
	out, err := exec.Command(program, "serve", "--data", t.TempDir(), "--listen", e.addr()).CombinedOutput()
	if err == nil {
		t.Fatal("two engines listen on one port")
	}
	contains(t, "message", string(out), "cannot listen on "+e.addr(), "--listen")
}

func TestParentGone(t *testing.T) {
	// The shell starts an engine for itself and ends.
	data := t.TempDir()
	script := fmt.Sprintf(`"%s" serve --data "%s" --listen 127.0.0.1:0 --parent-pid $$ >"%s/out" 2>"%s/err" & echo $!; sleep 1`, program, data, data, data)
	out, err := exec.Command("sh", "-c", script).Output()
	must(t, err)
	var pid int
	_, err = fmt.Sscan(string(out), &pid)
	must(t, err)
	deadline := time.Now().Add(8 * time.Second)
	for syscall.Kill(pid, 0) == nil {
		if state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(state), ") Z ") {
			break // ended; nobody here reaps orphans
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the engine outlives its parent")
		}
		time.Sleep(50 * time.Millisecond)
	}
	log, err := os.ReadFile(filepath.Join(data, "err"))
	must(t, err)
	contains(t, "log", string(log), "is gone")
}

func TestClientGoesAway(t *testing.T) {
	e := sharedEngine(t)
	for _, statement := range []string{
		"SELECT sleepEachRow(0.1), 'gone' FROM numbers(100) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 10000000",
		"SELECT number, 'gone' FROM numbers(100000000000)",
	} {
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader(statement))
			must(t, err)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
			}
			cancel()
		}
	}
	equal(t, "another query", e.query(t, "SELECT 1"), "1")
	deadline := time.Now().Add(5 * time.Second)
	for {
		running := e.query(t, "SELECT count() FROM system.processes WHERE query LIKE '%\\'gone\\'%' AND query NOT LIKE '%processes%'")
		if running == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s statements still run for clients that went away", running)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestHalfABodyInsertsNothing(t *testing.T) {
	e := sharedEngine(t)
	e.query(t, "CREATE TABLE half (n UInt8) ENGINE = Memory")
	// A body that promises more than it brings.
	cmd := exec.Command("curl", "-sS", "--max-time", "1", "-H", "Content-Length: 100", "-H", "Expect:", e.url, "-d", "INSERT INTO half FORMAT TSV\n1\n2\n")
	_ = cmd.Run()
	time.Sleep(100 * time.Millisecond)
	equal(t, "rows", e.query(t, "SELECT count() FROM half"), "0")
}
