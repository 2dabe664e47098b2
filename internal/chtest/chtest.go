// Package chtest gives the tests a real ClickHouse: one local engine for each
// test binary, or the server that CH_TEST_URI names.
//
// A package's TestMain calls [Main] or [Clean]; its tests then ask for [Target] and for a
// [Schema] of their own. A test that needs an engine to itself (to restart it,
// to give it a password or a certificate) calls [Start].
//
// Nothing is skipped: where there is neither an engine nor a server, tests fail.
package chtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Server says where a ClickHouse listens for HTTP, and who may log in.
type Server struct {
	Host           string
	Port           int
	User, Password string
	Secure         bool // TLS
}

// URI gives the server as a chstate URI, with a database name as it
// asks for one.
func (s Server) URI(database string) string {
	u := url.URL{
		Scheme: "clickhouse",
		User:   url.UserPassword(s.User, s.Password),
		Host:   s.hostPort(),
		Path:   "/" + database,
	}
	if s.Secure {
		u.RawQuery = "secure=true"
	}
	return u.String()
}

// URL gives the address of the server's HTTP interface.
func (s Server) URL() string {
	if s.Secure {
		return "https://" + s.hostPort()
	}
	return "http://" + s.hostPort()
}

func (s Server) hostPort() string {
	if strings.Contains(s.Host, ":") {
		return "[" + s.Host + "]:" + strconv.Itoa(s.Port)
	}
	return s.Host + ":" + strconv.Itoa(s.Port)
}

// shared is the server of this test binary; set by Main.
var shared struct {
	server Server
	err    error
	ready  bool
}

// Main starts the engine for this test binary (unless CH_TEST_URI names a
// server), runs the tests, ends the engine and exits. Call it from TestMain.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Clean is Main for packages that must leave nothing running: it fails where
// goroutines are left when all tests have passed.
func Clean(m *testing.M) { os.Exit(RunClean(m)) }

// RunClean is Clean for a TestMain that has something left to do: it gives the
// exit code instead of exiting.
func RunClean(m *testing.M) int {
	code := Run(m)
	if code != 0 {
		return code // a test that failed may well have left something
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines were left behind:", err)
		return 1
	}
	return code
}

// Run is Main for a TestMain that has something left to do: it gives the exit
// code instead of exiting.
func Run(m *testing.M) int {
	shared.ready = true
	if uri := os.Getenv("CH_TEST_URI"); uri != "" {
		shared.server, shared.err = parseURI(uri)
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "chtest-")
	if err != nil {
		shared.err = err
		return m.Run()
	}
	defer os.RemoveAll(dir)
	engine, err := Launch(Options{Data: dir})
	if err != nil {
		shared.err = err
		return m.Run()
	}
	defer engine.End()
	shared.server = engine.Server
	return m.Run()
}

// Shared gives the server of this test binary to what has no testing.TB, such
// as an example.
func Shared() (Server, error) { return shared.server, shared.err }

// Target gives the server of this test binary, and fails the test when there
// is none.
func Target(t testing.TB) Server {
	t.Helper()
	if !shared.ready {
		t.Fatal("chtest: TestMain must call chtest.Main")
	}
	if shared.err != nil {
		t.Fatalf("chtest: no ClickHouse to test with: %v", shared.err)
	}
	return shared.server
}

func parseURI(uri string) (Server, error) {
	u, err := url.Parse(uri)
	if err != nil {
		// The error of net/url repeats its input, password included.
		return Server{}, errors.New("CH_TEST_URI is not a URI of the form clickhouse://user:password@host:port/database")
	}
	if u.Scheme != "clickhouse" || u.Hostname() == "" {
		return Server{}, errors.New("CH_TEST_URI must be clickhouse://user:password@host:port/database")
	}
	s := Server{Host: u.Hostname(), Port: 8123, User: "default"}
	if u.User != nil {
		s.User = u.User.Username()
		s.Password, _ = u.User.Password()
	}
	switch v := u.Query().Get("secure"); v {
	case "", "false", "0":
	case "true", "1":
		s.Secure, s.Port = true, 8443
	default:
		return Server{}, fmt.Errorf("CH_TEST_URI: secure=%s is neither true nor false", v)
	}
	if p := u.Port(); p != "" {
		if s.Port, err = strconv.Atoi(p); err != nil {
			return Server{}, errors.New("CH_TEST_URI: the port is not a number")
		}
	}
	return s, nil
}
