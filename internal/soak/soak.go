// Package soak lets many processes write few states for long while everything
// that can fail does: a proxy cuts, delays and fails requests, the server and
// writers are killed. At the end it counts what was acknowledged and is not
// there, ids that are stuck, and what leaked. It needs /proc.
package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// Options say how hard and how long.
type Options struct {
	Duration     time.Duration
	Writers, IDs int
	// Faulty is the part of the requests that the proxy cuts, delays or fails.
	Faulty float64
	// ServerKills is how often the server is killed, WriterKills how often a writer is.
	ServerKills, WriterKills int
	// Dir is an empty folder for the server.
	Dir string
	// Log is told what goes on.
	Log io.Writer
}

// Report is what came out.
type Report struct {
	Took                    time.Duration
	Requests, Faults        int
	Acknowledged            int
	Unknown                 int            // there, but never acknowledged: their writer was told of a failure, or was killed
	Errors                  map[string]int // by kind
	Lost, Twice             []string       // operations that were acknowledged and are not there; that are there more than once
	Stuck                   []string       // ids that cannot be written at the end
	LongestWait             time.Duration  // for one of the ids at the end
	ServerKills             int
	WriterKills             int
	WriterMemory            [2]int // of the writer that is never killed: KiB after a third of the time, and at the end
	WriterFiles             [2]int // open files, likewise
	FilesBefore, FilesAfter int    // of this process, with the proxy
	ProcessesLeft           int
}

// Err says what must not be.
func (r Report) Err() error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(r.Acknowledged == 0, "nothing was written")
	bad(len(r.Lost) > 0, "%d acknowledged writes are lost: %.10q", len(r.Lost), r.Lost)
	bad(len(r.Twice) > 0, "%d writes were done twice: %.10q", len(r.Twice), r.Twice)
	bad(len(r.Stuck) > 0, "%d ids are stuck: %.5q", len(r.Stuck), r.Stuck)
	bad(r.ProcessesLeft > 0, "%d processes are left", r.ProcessesLeft)
	bad(r.FilesAfter > r.FilesBefore+8, "%d files are open, %d were", r.FilesAfter, r.FilesBefore)
	bad(r.WriterFiles[1] > r.WriterFiles[0]+16, "a writer's open files went from %d to %d", r.WriterFiles[0], r.WriterFiles[1])
	bad(r.WriterMemory[1] > r.WriterMemory[0]*3/2+20_000, "a writer's memory went from %d to %d KiB", r.WriterMemory[0], r.WriterMemory[1])
	return errors.Join(errs...)
}

type soak struct {
	Options
	job    writerJob
	report Report

	mu     sync.Mutex
	acked  map[string]map[string]bool // id → operations
	all    sync.WaitGroup
	serial int
}

// Run does it. The error is one of the set-up; what went wrong otherwise is in the report.
func Run(o Options) (Report, error) {
	engine, err := chtest.Launch(chtest.Options{Data: filepath.Join(o.Dir, "data")})
	if err != nil {
		return Report{}, err
	}
	defer engine.End()
	before := openFiles("self")
	proxy := faultproxy.Start(engine.URL())
	defer proxy.Close()
	proxy.Record(false)
	s := &soak{Options: o, acked: map[string]map[string]bool{}}
	s.report.Errors, s.report.FilesBefore = map[string]int{}, before
	s.job = writerJob{User: engine.User, Password: engine.Password, Schema: "soak", IDs: o.IDs}
	s.job.Host, s.job.Port = proxy.Address()
	proxy.On(s.fault)

	start := time.Now()
	writers := make([]*writer, o.Writers)
	for i := range writers {
		if writers[i], err = s.start(i); err != nil {
			return Report{}, err
		}
	}
	if err := s.disturb(engine, writers, start); err != nil {
		return Report{}, err
	}
	s.report.WriterMemory[1], s.report.WriterFiles[1] = memory(writers[0].pid()), openFiles(writers[0].pid())
	for _, w := range writers { // those that wait for a lock may finish
		_ = w.stdin.Close()
	}
	s.all.Wait()
	s.report.Took = time.Since(start)
	proxy.On(nil)
	if err := s.count(); err != nil {
		return Report{}, err
	}
	proxy.Close()
	s.report.ProcessesLeft = children() - 1 // the server
	s.report.FilesAfter = openFiles("self")
	return s.report, nil
}

// disturb kills what there is to kill, at even pace, until the time is over.
func (s *soak) disturb(engine *chtest.Engine, writers []*writer, start time.Time) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	measured := false
	for range tick.C {
		part := float64(time.Since(start)) / float64(s.Duration)
		if part >= 1 {
			return nil
		}
		if part > 1.0/3 && !measured {
			measured = true
			s.report.WriterMemory[0], s.report.WriterFiles[0] = memory(writers[0].pid()), openFiles(writers[0].pid())
		}
		if part > float64(s.report.ServerKills+1)/float64(s.ServerKills+1) {
			s.report.ServerKills++
			engine.Crash()
			s.say("server killed, %d acknowledged", s.total())
			time.Sleep(rand.N(time.Second))
			if err := engine.Relaunch(); err != nil {
				return err
			}
		}
		if part > float64(s.report.WriterKills+1)/float64(s.WriterKills+1) {
			s.report.WriterKills++
			i := 1 + rand.N(len(writers)-1) // the first one is measured
			_ = writers[i].cmd.Process.Kill()
			again, err := s.start(i)
			if err != nil {
				return err
			}
			writers[i] = again
		}
	}
	return nil
}

func (s *soak) say(format string, args ...any) {
	fmt.Fprintf(s.Log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

func (s *soak) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report.Acknowledged
}

// fault hits a part of the requests, in some way.
func (s *soak) fault(out http.ResponseWriter, r faultproxy.Request) bool {
	hit := rand.Float64() < s.Faulty
	s.mu.Lock()
	s.report.Requests++
	if hit {
		s.report.Faults++
	}
	s.mu.Unlock()
	if !hit {
		return false
	}
	faults := []faultproxy.Fault{
		faultproxy.Cut, faultproxy.CutAfter, faultproxy.CutHalfway, faultproxy.Status(503, "no upstream"), faultproxy.Code(242), faultproxy.Code(999),
		faultproxy.Delay(rand.N(1500*time.Millisecond), nil), faultproxy.Delay(rand.N(4*time.Second), nil), faultproxy.ExceptionAfter(999),
	}
	return faults[rand.N(len(faults))](out, r)
}

type writer struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

func (w *writer) pid() string { return fmt.Sprint(w.cmd.Process.Pid) }

// start starts a writer, and reads what it says.
func (s *soak) start(slot int) (*writer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s.serial++
	job := s.job
	job.Name = fmt.Sprintf("w%d.%d", slot, s.serial)
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	w := &writer{cmd: exec.Command(self)}
	w.cmd.Env = append(os.Environ(), writerEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	w.cmd.Stderr = s.Log
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	s.all.Go(func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			s.heard(lines.Text())
		}
		_ = w.cmd.Wait() // those that were killed end with an error
	})
	return w, nil
}

func (s *soak) heard(line string) {
	word, rest, _ := strings.Cut(line, " ")
	id, op, _ := strings.Cut(rest, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case word == "ack" && op != "":
		if s.acked[id] == nil {
			s.acked[id] = map[string]bool{}
		}
		s.acked[id][op] = true
		s.report.Acknowledged++
	case word == "err":
		s.report.Errors[id]++ // the kind stands there
		if s.report.Errors[id] <= 3 {
			fmt.Fprintf(s.Log, "%s: %s\n", id, op)
		}
	}
}

// count compares what is there with what was acknowledged, and writes each id once more.
func (s *soak) count() error {
	ctx := context.Background()
	o := chstate.Options{Host: s.job.Host, Port: s.job.Port, User: s.job.User, Password: s.job.Password, Schema: s.job.Schema}
	o.Lock.Wait = 20 * time.Second
	store, err := chstate.Open(ctx, o)
	if err != nil {
		return err
	}
	defer store.Close()
	for i := range s.IDs {
		id := fmt.Sprintf("id-%02d", i)
		var w written
		switch st, err := store.Get(ctx, id); {
		case errors.Is(err, chstate.ErrNoState):
		case err != nil:
			return err
		default:
			if err := json.Unmarshal(st.Completed, &w); err != nil {
				return err
			}
		}
		there := map[string]bool{}
		for _, op := range w.Ops {
			if there[op] {
				s.report.Twice = append(s.report.Twice, id+" "+op)
			}
			there[op] = true
			if !s.acked[id][op] {
				s.report.Unknown++
			}
		}
		for op := range s.acked[id] {
			if !there[op] {
				s.report.Lost = append(s.report.Lost, id+" "+op)
			}
		}
		start := time.Now()
		if err := add(store, id, "the end"); err != nil {
			s.report.Stuck = append(s.report.Stuck, id+": "+err.Error())
		}
		s.report.LongestWait = max(s.report.LongestWait, time.Since(start))
	}
	return nil
}

func openFiles(pid string) int {
	files, err := os.ReadDir("/proc/" + pid + "/fd")
	if err != nil {
		return 0
	}
	return len(files)
}

// memory gives a process's resident memory in KiB.
func memory(pid string) int {
	text, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		return 0
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * os.Getpagesize() / 1024
}

// children counts this process's children, zombies included.
func children() int {
	n := 0
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, t := range tasks {
		text, err := os.ReadFile(t)
		if err == nil {
			n += len(strings.Fields(string(text)))
		}
	}
	return n
}

// String gives the report for people.
func (r Report) String() string {
	return fmt.Sprintf(`time %s
requests %d, of which %d were cut, delayed or failed (%.1f %%)
server killed %d times, writers %d times
writes acknowledged %d, lost %d, done twice %d, there without an acknowledgement %d
failures told to writers, by kind: %v
ids stuck %d, longest wait for one at the end %s
a writer's memory %d KiB after a third of the time, %d KiB at the end; open files %d, %d
open files here %d before, %d after; processes left %d
`, r.Took.Round(time.Second), r.Requests, r.Faults, 100*float64(r.Faults)/float64(max(r.Requests, 1)), r.ServerKills, r.WriterKills,
		r.Acknowledged, len(r.Lost), len(r.Twice), r.Unknown, r.Errors, len(r.Stuck), r.LongestWait.Round(time.Millisecond),
		r.WriterMemory[0], r.WriterMemory[1], r.WriterFiles[0], r.WriterFiles[1], r.FilesBefore, r.FilesAfter, r.ProcessesLeft)
}
