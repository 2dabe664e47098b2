package clickhouse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// workConns is how many statements about states run at once. One is the common
// case; an export that streams and a few threads of a helper are the uncommon
// one. The lock's statements have as many places of their own, see places.
const (
	workConns = 16
	maxConns  = 2 * workConns
)

// connector sets up clickhouse-go, which connects at the first statement.
func (db *DB) connector() error {
	cfg := db.cfg
	tlsConfig, err := cfg.tlsConfig()
	if err != nil {
		return err
	}
	o := &clickhouse.Options{
		Addr: []string{cfg.address()},
		Auth: clickhouse.Auth{Username: cfg.User, Password: cfg.Password},
		TLS:  tlsConfig,
		// clickhouse-go bounds with DialTimeout the wait for a place in its
		// pool and the whole first query together, and an idle cloud service
		// may take a minute to answer that. The dialer below has a bound of
		// its own for connecting.
		DialTimeout:     cfg.SendReceiveTimeout,
		ReadTimeout:     cfg.SendReceiveTimeout,
		MaxOpenConns:    maxConns,
		MaxIdleConns:    maxConns,
		BlockBufferSize: 1,
		Settings:        clickhouse.Settings{},
		DialStrategy: func(ctx context.Context, id int, o *clickhouse.Options, dial clickhouse.Dial) (clickhouse.DialResult, error) {
			return clickhouse.DefaultDialStrategy(noDeadline{ctx}, id, o, dial)
		},
	}
	o.ClientInfo.Products = append(o.ClientInfo.Products, struct{ Name, Version string }{Name: "chstate"})
	for name, value := range cfg.ServerSettings {
		o.Settings[name] = value
	}
	if cfg.AccessToken != "" {
		if !cfg.Secure {
			return &Error{Kind: Connect, Target: db.Target(), Reason: "an access token is only sent over TLS", Advice: "set secure=true"}
		}
		o.GetJWT = func(context.Context) (string, error) { return cfg.AccessToken, nil }
	}

	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout}
	switch cfg.Protocol {
	case "http":
		proxy, err := cfg.proxy()
		if err != nil {
			return err
		}
		o.Protocol = clickhouse.HTTP
		if cfg.ProxyPath != "" {
			o.HttpUrlPath = "/" + strings.Trim(cfg.ProxyPath, "/") + "/"
		}
		// One transport for all of clickhouse-go's HTTP "connections", so that
		// they share the sockets.
		db.transport = &http.Transport{
			Proxy:                 proxy,
			DialContext:           dialer.DialContext,
			TLSClientConfig:       tlsConfig,
			TLSHandshakeTimeout:   cfg.ConnectTimeout,
			ResponseHeaderTimeout: cfg.SendReceiveTimeout,
			MaxIdleConnsPerHost:   maxConns,
			IdleConnTimeout:       90 * time.Second,
			DisableCompression:    true,
		}
		wire := &roundTripper{next: db.transport, passwordless: cfg.Password == "" && cfg.ClientCert == ""}
		o.TransportFunc = func(*http.Transport) (http.RoundTripper, error) { return wire, nil }
	case "native":
		o.Protocol = clickhouse.Native
		o.DialContext = func(ctx context.Context, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, max(cfg.ConnectTimeout, time.Millisecond))
			defer cancel()
			if tlsConfig == nil {
				return dialer.DialContext(ctx, "tcp", addr)
			}
			return (&tls.Dialer{NetDialer: dialer, Config: tlsConfig}).DialContext(ctx, "tcp", addr)
		}
	default:
		return &Error{Kind: Invalid, Reason: fmt.Sprintf("protocol %q is not known", cfg.Protocol), Advice: "use http or native"}
	}
	conn, err := clickhouse.Open(o)
	if err != nil {
		return &Error{Kind: Connect, Target: db.Target(), Reason: err.Error(), Err: err}
	}
	db.conn = tracing(conn, db.log)
	return nil
}

// noDeadline hides the time when a context ends (it still ends then):
// clickhouse-go turns a deadline into the setting max_execution_time, which an
// account in readonly mode may not send.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c Config) proxy() (func(*http.Request) (*url.URL, error), error) {
	if c.HTTPProxy == "" {
		return http.ProxyFromEnvironment, nil
	}
	u, err := url.Parse(c.HTTPProxy)
	if err != nil || u.Host == "" {
		// The text may hold the proxy's password, so it is not repeated.
		return nil, &Error{Kind: Invalid, Reason: "http_proxy is not a URL", Advice: "write it as http://host:port"}
	}
	return http.ProxyURL(u), nil
}

// via names the proxy that requests go through, "" when they do not.
func (db *DB) via() string {
	if db.transport == nil {
		return ""
	}
	u := &url.URL{Scheme: "http", Host: db.cfg.address()}
	if db.cfg.Secure {
		u.Scheme = "https"
	}
	p, err := db.transport.Proxy(&http.Request{URL: u})
	if err != nil || p == nil {
		return ""
	}
	return p.Scheme + "://" + p.Host // without the proxy's own password
}

func (c Config) tlsConfig() (*tls.Config, error) {
	if !c.Secure {
		return nil, nil
	}
	t := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.ServerHostName,
		InsecureSkipVerify: c.SkipVerify, //nolint:gosec // asked for with verify=false
	}
	if t.ServerName == "" {
		t.ServerName = strings.Trim(c.Host, "[]")
	}
	if c.CACert != "" {
		pem, err := os.ReadFile(c.CACert)
		if err != nil {
			return nil, fileError("ca_cert", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fileError("ca_cert", fmt.Errorf("%s holds no certificate in PEM form", c.CACert))
		}
	}
	if c.ClientCertKey != "" && c.ClientCert == "" {
		return nil, fileError("client_cert", errors.New("client_cert_key is set, but client_cert is not"))
	}
	if c.ClientCert != "" {
		key := c.ClientCertKey
		if key == "" {
			key = c.ClientCert // both in one file
		}
		cert, err := tls.LoadX509KeyPair(c.ClientCert, key)
		if err != nil {
			return nil, fileError("client_cert", err)
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}

func fileError(setting string, err error) *Error {
	return &Error{
		Kind:   Invalid,
		Reason: fmt.Sprintf("the setting %s cannot be used: %v", setting, err),
		Advice: "name a PEM file that can be read",
		Err:    err,
	}
}
