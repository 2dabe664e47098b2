package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// Cases from the field that need the tool as a process of its own.

// TestC08Signals: SIGINT and SIGTERM while the lock is held and the write is
// under way: the lock is free within 2 s, and the state is the old or the new one.
func TestC08Signals(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		tool, p := proxied(t)
		tool.run(exitDone, "set", "a", "--force", good)
		writing, over := make(chan bool, 10), make(chan bool)
		p.On(faultproxy.When("INSERT", func(http.ResponseWriter, faultproxy.Request) bool {
			writing <- true
			<-over
			return false
		}, ".`state` ("))
		set := tool.start("set", "a", "--force", `{"singer_state":{"new":1}}`)
		<-writing
		if err := set.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if code := set.ends(t); code != exitInterrupted {
			t.Errorf("%s: code %d: %s", sig, code, &set.err)
		}
		tool.unlocked()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: free after %s", sig, took)
		}
		close(over)
		p.On(nil)
		if got := tool.run(exitDone, "get", "a"); got != good+"\n" && got != `{"singer_state":{"new":1}}`+"\n" {
			t.Errorf("%s: the state is %s", sig, got)
		}
	}
}

// TestL01KilledHolder: a holder that is killed, and its machine with it, keeps
// the id for one lease; until then it is named by host and claim.
func TestL01KilledHolder(t *testing.T) {
	tool := newTool(t)
	holder := tool.start("lock", "hold", "a", "--lock-timeout-seconds", "2")
	until(t, "the lock is held", func() bool { return tool.code("lock", "show", "a") == exitDone })
	_ = holder.Process.Kill()
	holder.ends(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	tool.refuses(exitLocked, []string{fmt.Sprintf("pid %d on %s", holder.Process.Pid, host), `chstate lock release a --id '![0-9a-f-]{36}'`},
		"set", "a", "--force", good, "--lock-wait-seconds", "0")
	start := time.Now()
	tool.run(exitDone, "set", "a", "--force", good)
	if took := time.Since(start); took > 15*time.Second { // a lease of 2 s, on a busy machine
		t.Errorf("taken over after %s", took)
	}
}

// TestL05L06StoppedHolder: a holder that is stopped past its lease finds out,
// and does not remove its successor's lock.
func TestL05L06StoppedHolder(t *testing.T) {
	tool := newTool(t)
	// What it says counts: the lock's table shows also who has only announced.
	holds := func(p *process) func() bool {
		return func() bool { return strings.Contains(p.err.String(), "is held until Ctrl-C") }
	}
	first := tool.start("lock", "hold", "a", "--lock-timeout-seconds", "2")
	until(t, "the lock is held", holds(first))
	_ = first.Process.Signal(syscall.SIGSTOP)
	second := tool.start("lock", "hold", "a")
	until(t, "the lock is taken over", holds(second))
	if list := tool.run(exitDone, "lock", "list"); !matches(fmt.Sprintf(`(?m)^a +holds .* %d `, second.Process.Pid), list) {
		t.Errorf("the list of locks: %s", list)
	}
	_ = first.Process.Signal(syscall.SIGCONT)
	if code := first.ends(t); code != exitLost {
		t.Errorf("the first holder ended with %d: %s", code, &first.err)
	}
	tool.refuses(exitLocked, []string{fmt.Sprint(second.Process.Pid)}, "set", "a", "--force", good, "--lock-wait-seconds", "0")
	_ = second.Process.Signal(syscall.SIGINT)
	if code := second.ends(t); code != exitDone {
		t.Errorf("the second holder ended with %d: %s", code, &second.err)
	}
	tool.run(exitDone, "set", "a", "--force", good, "--lock-wait-seconds", "0")
}

// TestN10ProxyFromTheEnvironment: HTTP_PROXY and NO_PROXY are kept to.
func TestN10ProxyFromTheEnvironment(t *testing.T) {
	tool, p := proxied(t)
	server := chtest.Server{Host: "clickhouse.invalid", Port: 8123, User: chtest.Target(t).User, Password: chtest.Target(t).Password}
	tool.env[0] = "MELTANO_STATE_BACKEND_URI=" + server.URI("analytics")
	proxy := p.Listener.Addr().String()
	through := tool
	through.env = append(through.env[:len(through.env):len(through.env)], "HTTP_PROXY=http://proxyuser:s3cret@"+proxy)
	set := through.start("set", "a", "--force", good)
	if code := set.ends(t); code != exitDone {
		t.Errorf("through the proxy: %d %s", code, &set.err)
	}
	p.On(faultproxy.Page(502, "Bad Gateway"))
	get := through.start("get", "a")
	if code := get.ends(t); code != exitConnect || !matches(`502.*proxy http://`+proxy+`.*NO_PROXY`, get.err.String()) || strings.Contains(get.err.String(), "s3cret") {
		t.Errorf("a proxy that fails: %d %s", code, &get.err)
	}
	p.On(nil)
	p.Take()
	through.env = append(through.env, "NO_PROXY=clickhouse.invalid")
	past := through.start("get", "a", "--lock-wait-seconds", "0.2")
	if code := past.ends(t); code != exitConnect || !strings.Contains(past.err.String(), `"clickhouse.invalid"`) || len(p.Take()) > 0 {
		t.Errorf("past the proxy: %d %s", code, &past.err)
	}
}

// TestL04SeparateProcesses: processes that know nothing of each other merge
// into one state, and no merge is lost.
func TestL04SeparateProcesses(t *testing.T) {
	tool := newTool(t)
	const processes, each = 8, 4
	var all []*process
	for i := range processes {
		script := fmt.Sprintf(`for j in $(seq %d); do "$0" merge sum "{\"singer_state\":{\"p%d-$j\":1}}" || exit 1; done`, each, i)
		p := tool.start("version")
		p.ends(t)
		sh := &process{Cmd: exec.Command("sh", "-c", script, p.Path)}
		sh.Env, sh.Stderr = p.Env, &sh.err
		if err := sh.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, sh)
	}
	for _, p := range all {
		if code := p.ends(t); code != exitDone {
			t.Errorf("code %d: %s", code, &p.err)
		}
	}
	if n := strings.Count(tool.run(exitDone, "get", "sum"), `":1`); n != processes*each {
		t.Errorf("%d of %d merges are there", n, processes*each)
	}
}
