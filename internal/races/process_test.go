//go:build unix

package races

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
)

// patience bounds the wait for any one report of a child. It is for machines
// that are busy with other things.
const patience = 4 * time.Minute

// process is a child that runs.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	stderr  bytes.Buffer
	reports chan report
	gone    chan struct{} // it has ended

	mu   sync.Mutex
	ops  []op
	lost chan struct{} // closed at the first event "lost"
}

// setupFor is a child's setup on a server, with tables of the test's own.
func setupFor(t *testing.T, s chtest.Server) setup {
	t.Helper()
	return setup{Server: s, Schema: chtest.SchemaOn(t, s), Lease: 10 * time.Second, Wait: time.Minute, Linger: -1}
}

// victim is the setup of one who is going to lose its hold: its lease is short,
// so that the test is. Who is to keep theirs have the usual one, for this may
// be a busy machine.
func (s setup) victim() setup {
	s.Lease = 2 * time.Second
	return s
}

// start starts a child, which ends with the test.
func start(t *testing.T, conf setup) *process {
	t.Helper()
	return startIn(t, conf, nil)
}

// startIn is start for a child in a process group of its own, or in that of a leader.
func startIn(t *testing.T, conf setup, group *syscall.SysProcAttr) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0]), reports: make(chan report, 16), gone: make(chan struct{}), lost: make(chan struct{})}
	p.cmd.SysProcAttr = group
	p.cmd.Env = append(os.Environ(), childEnv+"=1")
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(out)
	t.Cleanup(func() {
		p.kill()
		if p.stderr.Len() > 0 {
			t.Errorf("a child said on stderr: %s", p.stderr.String())
		}
	})
	p.write(conf)
	return p
}

func (p *process) listen(out io.Reader) {
	defer close(p.gone)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			r = report{Done: true, Err: "other", Text: "a child wrote " + lines.Text()}
		}
		switch r.Event {
		case "added":
			p.mu.Lock()
			p.ops = append(p.ops, *r.Op)
			p.mu.Unlock()
		case "lost":
			select {
			case <-p.lost:
			default:
				close(p.lost)
			}
		default:
			p.reports <- r
		}
	}
	_ = p.cmd.Wait()
}

func (p *process) write(v any) {
	p.t.Helper()
	line, err := json.Marshal(v)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	if err != nil {
		p.t.Fatalf("tell a child: %v", err)
	}
}

// tell gives an order and does not wait for the answer.
func (p *process) tell(o order) { p.t.Helper(); p.write(o) }

// answer waits for the answer to an order.
func (p *process) answer() report {
	p.t.Helper()
	select {
	case r := <-p.reports:
		return r
	case <-p.gone:
		select {
		case r := <-p.reports: // its last
			return r
		default:
		}
		p.t.Fatal("a child ended without an answer")
	case <-time.After(patience):
		p.t.Fatalf("a child did not answer within %s", patience)
	}
	return report{}
}

// do gives an order and waits for its answer.
func (p *process) do(o order) report { p.t.Helper(); p.tell(o); return p.answer() }

// must is do for an order that has to succeed; it gives the number, if there is one.
func (p *process) must(o order) int {
	p.t.Helper()
	r := p.do(o)
	if r.Err != "" {
		p.t.Fatalf("%s: %s", o.Do, r.Text)
	}
	return r.N
}

// refused is do for an order that has to fail in a certain way.
func (p *process) refused(o order, want string) {
	p.t.Helper()
	if r := p.do(o); r.Err != want {
		p.t.Errorf("%s: %q (%s), want %q", o.Do, r.Err, r.Text, want)
	}
}

// told waits until the child was told that it lost its hold.
func (p *process) told(within time.Duration) {
	p.t.Helper()
	select {
	case <-p.lost:
	case <-time.After(within):
		p.t.Errorf("the holder was not told within %s that it lost the lock", within)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the child at once, with all that is in it.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.gone
}

// close ends the child in order.
func (p *process) close() {
	p.t.Helper()
	p.must(order{Do: "close"})
	<-p.gone
}
