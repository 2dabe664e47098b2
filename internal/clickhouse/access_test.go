package clickhouse

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
	"github.com/chstate/chstate/internal/testca"
	"github.com/chstate/chstate/lock"
)

func TestWrongPassword(t *testing.T) {
	engine := chtest.Start(t, chtest.Options{User: "etl", Password: "right:@/#?%[ pässword"})
	cfg := testConfig(engine.Server, chtest.SchemaOn(t, engine.Server))
	if err := openWith(t, cfg).Insert(ctxFor(t), Row{ID: "a", UpdatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ user, password string }{{"etl", "s3cret"}, {"etl", ""}, {"nobody", "s3cret"}} {
		cfg.User, cfg.Password = c.user, c.password
		start := time.Now()
		_, _, err := openWith(t, cfg).Get(ctxFor(t), "a")
		wantKind(t, err, Login, "516 AUTHENTICATION_FAILED", `check user "`+c.user+`" and its password`)
		if time.Since(start) > 2*time.Second {
			t.Error("a wrong password is retried")
		}
	}
}

// TestServerRestarts: a store outlives its server's end, and works on as soon
// as the server is back.
func TestServerRestarts(t *testing.T) {
	engine := chtest.Start(t, chtest.Options{})
	cfg := testConfig(engine.Server, chtest.SchemaOn(t, engine.Server))
	cfg.RetryFor = 30 * time.Second
	db := openWith(t, cfg)
	ctx := ctxFor(t)
	for i := range 20 {
		if err := db.Insert(ctx, Row{ID: "a", UpdatedAt: lock.Millis(1000 + i)}); err != nil {
			t.Fatal(err)
		}
	}
	engine.Kill(t)
	done := make(chan error)
	go func() { done <- db.Insert(ctx, Row{ID: "b", UpdatedAt: 5}) }()
	time.Sleep(100 * time.Millisecond)
	engine.Restart(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if row, _, err := db.Get(ctx, "a"); err != nil || row.UpdatedAt != 1019 {
		t.Fatal(row.UpdatedAt, err)
	}
	if _, found, err := db.Get(ctx, "b"); err != nil || !found {
		t.Fatal(found, err)
	}
}

// authority makes certificates.
type authority struct{ *testca.CA }

func newAuthority(t *testing.T) authority {
	t.Helper()
	ca, err := testca.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return authority{ca}
}

func (a authority) issue(t *testing.T, name string, addresses ...net.IP) (cert, key string) {
	t.Helper()
	cert, key, err := a.Issue(name, time.Hour, addresses...)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	cert, key := ca.issue(t, "clickhouse.test", net.IPv4(127, 0, 0, 1))
	engine := chtest.Start(t, chtest.Options{TLSCert: cert, TLSKey: key}) // a user without a password
	ctx := ctxFor(t)
	base := testConfig(engine.Server, chtest.SchemaOn(t, engine.Server))
	if !base.Secure {
		t.Fatal("the engine does not say https")
	}
	try := func(change func(*Config)) error {
		cfg := base
		change(&cfg)
		_, _, err := openWith(t, cfg).Get(ctx, "a")
		return err
	}
	for name, change := range map[string]func(*Config){
		"ca_cert":          func(c *Config) { c.CACert = ca.File },
		"verify=false":     func(c *Config) { c.SkipVerify = true },
		"server_host_name": func(c *Config) { c.CACert, c.ServerHostName = ca.File, "clickhouse.test" },
	} {
		if err := try(change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantKind(t, try(func(*Config) {}), Connect, "authority that is not trusted", "ca_cert", "https://127.0.0.1:")
	wantKind(t, try(func(c *Config) { c.CACert = stranger.File }), Connect, "authority that is not trusted")
	wantKind(t, try(func(c *Config) { c.CACert, c.ServerHostName = ca.File, "other.test" }), Connect, "another name", "clickhouse.test", "server_host_name")
	wantKind(t, try(func(c *Config) { c.CACert, c.Host = ca.File, "localhost" }), Connect, "another name")
	plain := try(func(c *Config) { c.Secure = false })
	wantKind(t, plain, Connect, "http://127.0.0.1:")
	t.Logf("plain to a TLS port: %v", plain)
}

func TestTLSFiles(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"ca_cert cannot be used":     func(c *Config) { c.CACert = "/no/such/file" },
		"no certificate in PEM":      func(c *Config) { c.CACert = junk },
		"client_cert cannot be used": func(c *Config) { c.ClientCert = junk },
		"client_cert is not":         func(c *Config) { c.ClientCertKey = junk },
		"http_proxy is not a URL":    func(c *Config) { c.HTTPProxy = "http://u:s3cret@[" },
		`protocol "grpc"`:            func(c *Config) { c.Protocol = "grpc" },
	} {
		cfg := testConfig(chtest.Server{Host: "h", Port: 8443, Secure: true}, "meltano")
		change(&cfg)
		_, err := Open(cfg)
		wantKind(t, err, Invalid, name)
	}
	cfg := testConfig(chtest.Server{Host: "h", Port: 8123}, "meltano")
	cfg.AccessToken = "t0ken"
	_, err := Open(cfg)
	wantKind(t, err, Connect, "only sent over TLS", "secure=true")
}

// quiet swallows what net/http says of failed TLS connections.
var quiet = log.New(io.Discard, "", 0)

// TestN03 is the field case N03: each mix-up of ports and TLS has its hint.
func TestN03(t *testing.T) {
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = quiet
	tlsServer.StartTLS()
	defer tlsServer.Close()
	plainServer := httptest.NewServer(http.NotFoundHandler())
	defer plainServer.Close()
	_, tlsPort, _ := hostPort(t, tlsServer.URL)
	_, plainPort, _ := hostPort(t, plainServer.URL)

	// What ClickHouse's native port says to HTTP, and to a TLS greeting; what
	// its HTTP port says to anything that is not HTTP.
	nativePort := answering(t, faultproxy.NativePort)
	httpPort := answering(t, func(string) string { return "HTTP/1.1 400 Bad Request\r\nConnection: Close\r\n\r\n" })

	for _, c := range []struct {
		name, protocol string
		secure         bool
		port           int
		parts          []string
	}{
		{"TLS to a plain port", "http", true, plainPort, []string{"does not speak TLS", "secure=false"}},
		{"plain to a TLS port", "http", false, tlsPort, []string{"secure=true"}},
		{"HTTP to the native port", "http", false, nativePort, []string{"native protocol", "8123"}},
		{"TLS to the native port", "http", true, nativePort, []string{"cut", "protocol=http with secure=true"}},
		{"native to the HTTP port", "native", false, httpPort, []string{"not ClickHouse's native protocol", "9000"}},
		{"native to a TLS port", "native", false, tlsPort, []string{"cut", "protocol=native with secure=false"}},
		{"native TLS to the HTTP port", "native", true, plainPort, []string{"does not speak TLS"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(chtest.Server{Host: "127.0.0.1", Port: c.port, User: "u", Password: "s3cret"}, "meltano")
			cfg.Secure, cfg.Protocol, cfg.SkipVerify, cfg.RetryFor = c.secure, c.protocol, true, 200*time.Millisecond
			_, _, err := openWith(t, cfg).Get(ctxFor(t), "a")
			wantKind(t, err, Connect, c.parts...)
		})
	}
}

// answering gives the port of such a listener, for the test's time.
func answering(t *testing.T, answer func(said string) string) (port int) {
	t.Helper()
	l, err := faultproxy.Listen(answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// TestPortHints: on ClickHouse's usual ports the hint names what belongs to them.
func TestPortHints(t *testing.T) {
	for _, c := range []struct {
		protocol string
		secure   bool
		port     int
		want     string
	}{
		{"http", false, 8123, ""},
		{"http", true, 8443, ""},
		{"http", false, 18123, ""},
		{"http", false, 8443, "port 8443 is usually protocol=http with secure=true: set these, or use port 8123"},
		{"http", true, 8123, "port 8123 is usually protocol=http with secure=false: set these, or use port 8443"},
		{"http", false, 9000, "port 9000 is usually protocol=native with secure=false: set these, or use port 8123"},
		{"http", true, 9440, "port 9440 is usually protocol=native with secure=true: set these, or use port 8443"},
		{"native", false, 8123, "port 8123 is usually protocol=http with secure=false: set these, or use port 9000"},
		{"native", true, 9000, "port 9000 is usually protocol=native with secure=false: set these, or use port 9440"},
	} {
		db := &DB{cfg: Config{Protocol: c.protocol, Secure: c.secure, Port: c.port}}
		if got := db.portHint(); got != c.want && got != "; "+c.want {
			t.Errorf("%s secure=%t on %d: %q, want %q", c.protocol, c.secure, c.port, got, c.want)
		}
	}
}

// TestN10 is the field case N10: requests go through a proxy that is set, and
// its failure names it, without its password.
func TestN10(t *testing.T) {
	ctx := ctxFor(t)
	seen := 0
	good := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) { seen++ }})
	defer good.Close()
	cfg := testConfig(chtest.Target(t), chtest.Schema(t))
	if cfg.Secure {
		// Then a proxy is asked to CONNECT, which this one does not know.
		t.Log("the server has TLS: only the failing proxy is tried")
	} else {
		cfg.HTTPProxy = good.URL
		if err := openWith(t, cfg).Insert(ctx, Row{ID: "a", UpdatedAt: 1}); err != nil {
			t.Fatal(err)
		}
		if seen == 0 {
			t.Error("the proxy was not used")
		}
	}
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no route to upstream", http.StatusBadGateway)
	}))
	defer bad.Close()
	cfg.HTTPProxy = strings.Replace(bad.URL, "http://", "http://proxyuser:s3cret@", 1)
	_, _, err := openWith(t, cfg).Get(ctx, "a")
	wantKind(t, err, Connect, "proxy "+bad.URL, "NO_PROXY")
}

func TestClientCertificate(t *testing.T) {
	ca := newAuthority(t)
	serverCert, serverKey := ca.issue(t, "localhost", net.IPv4(127, 0, 0, 1))
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	var header http.Header
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		exception(w, 497, "ACCESS_DENIED", "Not enough privileges")
	}))
	srv.Config.ErrorLog = quiet
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert}
	srv.StartTLS()
	defer srv.Close()

	cfg := testConfig(chtest.Server{User: "etl"}, "meltano")
	cfg.Host, cfg.Port, cfg.Secure = hostPort(t, srv.URL)
	cfg.CACert, cfg.RetryFor = ca.File, 200*time.Millisecond
	_, _, err = openWith(t, cfg).Get(ctxFor(t), "a")
	wantKind(t, err, Connect, "certificate", "client_cert")

	cfg.ClientCert, cfg.ClientCertKey = ca.issue(t, "etl")
	_, _, err = openWith(t, cfg).Get(ctxFor(t), "a")
	wantKind(t, err, Denied)
	if header.Get("X-ClickHouse-SSL-Certificate-Auth") != "on" || header.Get("X-ClickHouse-User") != "etl" {
		t.Errorf("headers: %v", header)
	}

	cfg.AccessToken = "t0ken"
	_, _, err = openWith(t, cfg).Get(ctxFor(t), "a")
	wantKind(t, err, Denied)
	if header.Get("Authorization") != "Bearer t0ken" {
		t.Errorf("headers: %v", header)
	}
}

// TestN13ProxyPathAndIPv6: IPv6 addresses with and without brackets, and a path before the interface.
func TestN13ProxyPathAndIPv6(t *testing.T) {
	var path string
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		exception(w, 516, "AUTHENTICATION_FAILED", "etl: Authentication failed")
	})}}
	srv.Start()
	defer srv.Close()
	for _, host := range []string{"::1", "[::1]"} {
		cfg := testConfig(chtest.Server{Host: host, Port: l.Addr().(*net.TCPAddr).Port, User: "etl"}, "meltano")
		cfg.ProxyPath = "/clickhouse/"
		_, _, err = openWith(t, cfg).Get(ctxFor(t), "a")
		wantKind(t, err, Login, "http://[::1]:", "/clickhouse")
		if path != "/clickhouse/" {
			t.Errorf("path %q", path)
		}
	}
}
