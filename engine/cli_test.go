package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// runProgram runs chstate-engine to its end.
func runProgram(t *testing.T, env []string, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestHelpAndVersion(t *testing.T) {
	// Both work where there is no library.
	missing := []string{"CHDB_LIB_PATH=/nowhere/libchdb.so"}
	for _, args := range [][]string{{"--help"}, {"help"}, {"serve", "--help"}} {
		out, _, exit := runProgram(t, missing, args...)
		equal(t, "exit code", exit, 0)
		contains(t, "help", out, "chstate-engine serve --data DIR", "--parent-pid", "CHSTATE_ENGINE_PASSWORD", "make engine")
	}
	out, _, exit := runProgram(t, missing, "version")
	equal(t, "exit code", exit, 0)
	contains(t, "version", out, "chstate-engine ", "libchdb 26.5.3")
}

func TestBadFlags(t *testing.T) {
	data := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
		exit int
	}{
		{nil, "no command given", 2},
		{[]string{"start"}, `unknown command "start"`, 2},
		{[]string{"serve"}, "--data is missing", 2},
		{[]string{"serve", "--data", data, "--nonsense"}, "-nonsense", 2},
		{[]string{"serve", "--data", data, "extra"}, `no argument "extra"`, 2},
		{[]string{"serve", "--data", data, "--listen", "8123"}, "--listen 8123 is not HOST:PORT", 2},
		{[]string{"serve", "--data", data, "--listen", "127.0.0.1:99999"}, "cannot listen on", 1},
		{[]string{"serve", "--data", data, "--user", ""}, "--user is empty", 2},
		{[]string{"serve", "--data", data, "--tls-cert", "x"}, "--tls-cert and --tls-key go together", 2},
		{[]string{"serve", "--data", data, "--tls-cert", "/nowhere", "--tls-key", "/nowhere"}, "cannot use --tls-cert /nowhere", 1},
		{[]string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--config-file", "/nowhere.xml"}, "cannot read --config-file", 1},
		{[]string{"serve", "--data", data, "--parent-pid", "-1"}, "--parent-pid -1 is no process", 2},
		{[]string{"serve", "--data", data, "--log-level", "loud"}, "log-level", 2},
		{[]string{"serve", "--data", "/dev/null/x", "--listen", "127.0.0.1:0"}, "cannot make the data folder", 1},
	} {
		out, errs, exit := runProgram(t, nil, c.args...)
		equal(t, c.want+": exit code", exit, c.exit)
		equal(t, c.want+": standard output", out, "")
		contains(t, "message", errs, "chstate-engine: ", c.want)
	}
}

func TestMissingLibrary(t *testing.T) {
	serve := []string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}
	_, errs, exit := runProgram(t, []string{"CHDB_LIB_PATH=", "XDG_CACHE_HOME=/nowhere"}, serve...)
	equal(t, "exit code", exit, 1)
	contains(t, "no library", errs, "/nowhere/chstate/libchdb/26.5.3/libchdb.so", "make engine", "CHDB_LIB_PATH")
	_, errs, exit = runProgram(t, []string{"CHDB_LIB_PATH=/nowhere/libchdb.so"}, serve...)
	equal(t, "exit code", exit, 1)
	contains(t, "wrong path", errs, "CHDB_LIB_PATH names /nowhere/libchdb.so", "make engine")
	text := filepath.Join(t.TempDir(), "libchdb.so")
	must(t, os.WriteFile(text, []byte("no library"), 0o600))
	_, errs, exit = runProgram(t, []string{"CHDB_LIB_PATH=" + text}, serve...)
	equal(t, "exit code", exit, 1)
	contains(t, "not a library", errs, "cannot load "+text)
}

func TestAuthenticationByEveryWay(t *testing.T) {
	e := start(t, t.TempDir(), []string{"CHSTATE_ENGINE_PASSWORD=secret"}, "--user", "me")
	select1 := "?query=SELECT+1"
	for name, args := range map[string][]string{
		"basic":   {"-u", "me:secret", e.url + "/" + select1},
		"headers": {"-H", "X-ClickHouse-User: me", "-H", "X-ClickHouse-Key: secret", e.url + "/" + select1},
		"URL":     {e.url + "/" + select1 + "&user=me&password=secret"},
	} {
		equal(t, name, curl(t, args...), "1\n")
	}
	for name, args := range map[string][]string{
		"nothing":        {e.url + "/" + select1},
		"wrong basic":    {"-u", "me:wrong", e.url + "/" + select1},
		"wrong header":   {"-H", "X-ClickHouse-User: me", "-H", "X-ClickHouse-Key: wrong", e.url + "/" + select1},
		"wrong URL":      {e.url + "/" + select1 + "&user=me&password=wrong"},
		"wrong user":     {"-u", "you:secret", e.url + "/" + select1},
		"two ways":       {"-u", "me:secret", e.url + "/" + select1 + "&user=me&password=secret"},
		"another scheme": {"-H", "Authorization: Bearer secret", e.url + "/" + select1},
	} {
		out := curl(t, append([]string{"-i"}, args...)...)
		contains(t, name, out, "HTTP/1.1 403 Forbidden", "X-ClickHouse-Exception-Code: 516", "(AUTHENTICATION_FAILED) (version ")
	}
	equal(t, "ping needs none", curl(t, e.url+"/ping"), "Ok.\n")
}

func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	e := start(t, t.TempDir(), []string{"CHSTATE_ENGINE_PASSWORD=secret"}, "--tls-cert", cert, "--tls-key", key)
	contains(t, "ready line", e.ready, "ready https://127.0.0.1:")
	equal(t, "curl", curl(t, "--cacert", cert, "-u", "default:secret", e.url+"/?query=SELECT+1"), "1\n")
	conn := dial(t, e, func(o *clickhouse.Options) {
		o.TLS = &tls.Config{RootCAs: pool}
		o.Auth = clickhouse.Auth{Username: "default", Password: "secret"}
	})
	must(t, conn.Ping(t.Context()))
}

// certificate makes a self-signed one for 127.0.0.1.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "chstate-engine test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, os.WriteFile(certFile, certPEM, 0o600))
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pool
}

func TestConfigFile(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.xml")
	must(t, os.WriteFile(config, []byte("<clickhouse><macros><shard>from the file</shard></macros></clickhouse>"), 0o600))
	e := start(t, t.TempDir(), nil, "--config-file", config)
	equal(t, "macro", e.query(t, "SELECT getMacro('shard')"), "from the file")
}

func TestConfigInWorkingFolderIsNotTaken(t *testing.T) {
	work := t.TempDir()
	must(t, os.WriteFile(filepath.Join(work, "config.xml"), []byte("<clickhouse><macros><shard>found</shard></macros></clickhouse>"), 0o600))
	t.Chdir(work)
	e := start(t, "data", nil)
	if text, err := post(e.url, "SELECT getMacro('shard')"); err == nil {
		t.Errorf("the macro is %q", text)
	}
}
