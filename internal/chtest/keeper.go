//go:build unix

package chtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// zkServer is where Debian's package zookeeper has its start script.
const zkServer = "/usr/share/zookeeper/bin/zkServer.sh"

// Keeper is a ZooKeeper that a test has for itself, for KeeperMap tables.
type Keeper struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

// StartKeeper starts a ZooKeeper on a free port, which ends with the test.
// Where the package is not installed the test is skipped, unless
// CHSTATE_REQUIRE_KEEPER is set, as CI does: `make test` says at its end that
// the strategy "keeper" was not tested.
func StartKeeper(t testing.TB) *Keeper {
	t.Helper()
	if _, err := os.Stat(zkServer); err != nil {
		if os.Getenv("CHSTATE_REQUIRE_KEEPER") != "" {
			t.Fatalf("chtest: %s is missing: install Debian's package zookeeper", zkServer)
		}
		t.Skip("Debian's package zookeeper is not installed")
	}
	k := &Keeper{dir: t.TempDir(), port: freePort(t)}
	// Short sessions, so that losing one takes no longer than a test may.
	conf := fmt.Sprintf("tickTime=200\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=ruok\n",
		filepath.Join(k.dir, "data"), k.port)
	if err := os.WriteFile(filepath.Join(k.dir, "zoo.cfg"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	k.Start(t)
	t.Cleanup(k.end)
	return k
}

// EngineConfig gives the path of an engine configuration that uses the keeper.
func (k *Keeper) EngineConfig(t testing.TB) string {
	t.Helper()
	path := filepath.Join(k.dir, "engine.xml")
	text := fmt.Sprintf(`<clickhouse>
  <zookeeper>
    <node><host>127.0.0.1</host><port>%d</port></node>
    <session_timeout_ms>2000</session_timeout_ms>
    <operation_timeout_ms>2000</operation_timeout_ms>
  </zookeeper>
  <keeper_map_path_prefix>/chtest</keeper_map_path_prefix>
</clickhouse>
`, k.port)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Start starts the keeper (again), on the same port and data, and waits until it answers.
func (k *Keeper) Start(t testing.TB) {
	t.Helper()
	k.cmd = exec.Command(zkServer, "start-foreground", filepath.Join(k.dir, "zoo.cfg"))
	k.cmd.Env = append(os.Environ(), "ZOO_LOG_DIR="+k.dir, "JVMFLAGS=-Xmx96m")
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the script starts Java
	if err := k.cmd.Start(); err != nil {
		t.Fatalf("chtest: start ZooKeeper: %v", err)
	}
	for start := time.Now(); time.Since(start) < startLimit; time.Sleep(100 * time.Millisecond) {
		if k.ok() {
			return
		}
	}
	k.end()
	t.Fatalf("chtest: ZooKeeper did not answer within %s", startLimit)
}

// Stop takes the keeper away; Start brings it back.
func (k *Keeper) Stop(t testing.TB) {
	t.Helper()
	k.end()
}

func (k *Keeper) ok() bool {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", k.port), time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("ruok")); err != nil {
		return false
	}
	b := make([]byte, 4)
	n, _ := c.Read(b)
	return strings.HasPrefix(string(b[:n]), "imok")
}

func (k *Keeper) end() {
	if k.cmd == nil {
		return
	}
	_ = syscall.Kill(-k.cmd.Process.Pid, syscall.SIGKILL)
	_ = k.cmd.Wait()
	k.cmd = nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
