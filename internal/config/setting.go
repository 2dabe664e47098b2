package config

import (
	"slices"
	"strings"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/lock"
)

// Kind says what values a setting takes.
type Kind int

const (
	// Text is any text.
	Text Kind = iota
	// Path is the name of a file.
	Path
	// Whole is a whole number from Min to Max.
	Whole
	// Seconds is a number of seconds from Min to Max, fractions allowed.
	Seconds
	// Switch is true or false, also written 1/0, yes/no, on/off.
	Switch
	// Choice is one of Choices.
	Choice
)

// String names the kind for help texts and `chstate config`.
func (k Kind) String() string {
	return [...]string{"text", "path", "whole number", "seconds", "true/false", "choice"}[k]
}

// Setting is one thing that can be set. [Settings] lists them all; flags, names
// in the environment, URI parameters and the documentation follow from it.
type Setting struct {
	// Name is the last part of Meltano's name, and the URI parameter: "host".
	Name string
	// Default is what holds when nothing is given; "" for none, or for a
	// default that follows from other settings (then DefaultNote says so).
	Default, DefaultNote string
	// Help explains it in one sentence.
	Help string
	Kind Kind
	// Secret values are never printed and have no flag.
	Secret bool
	// MeltanosOwn settings are named state_backend.<name> and are not URI parameters.
	MeltanosOwn bool

	Choices  []string
	Min, Max float64

	apply func(*chstate.Options, value)
}

// ourKeys is what the keys of our own settings begin with.
const ourKeys = "state_backend.clickhouse."

// Key is the name in Meltano: "state_backend.clickhouse.host".
func (s Setting) Key() string {
	if s.MeltanosOwn {
		return "state_backend." + s.Name
	}
	return ourKeys + s.Name
}

// Env is the name in the environment and in .env.
func (s Setting) Env() string { return envName(s.Key()) }

// envName is what Meltano calls a key in the environment.
func envName(key string) string {
	return "MELTANO_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Flag is the command line flag without its dashes, "" for a secret.
func (s Setting) Flag() string {
	if s.Secret {
		return ""
	}
	return strings.ReplaceAll(s.Name, "_", "-")
}

// Param is the name in the URI's query, "" for the few that have none.
func (s Setting) Param() string {
	if s.MeltanosOwn {
		return ""
	}
	return s.Name
}

// lastResort is the name under which others' settings may serve, "" for Meltano's own.
func (s Setting) lastResort() string {
	if s.MeltanosOwn {
		return ""
	}
	return "CLICKHOUSE_" + strings.ToUpper(s.Name)
}

// Settings gives every setting, in the order of the documentation.
func Settings() []Setting { return slices.Clone(table) }

func find(name string) (Setting, bool) {
	i := slices.IndexFunc(table, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return table[i], true
}

const (
	maxSeconds = 1e8 // three years: beyond is a slip of the keyboard
	maxLease   = float64(lock.MaxLease / time.Second)
)

var table = []Setting{
	{Name: "uri", MeltanosOwn: true,
		Help: "Where the state is kept: clickhouse://user:password@host:port/database?parameters."},
	{Name: "host", Default: "localhost",
		Help:  "Name or address of the server; an IPv6 address with or without brackets.",
		apply: func(o *chstate.Options, v value) { o.Host = v.text }},
	{Name: "port", Kind: Whole, Min: 1, Max: 65535, Default: "8123",
		DefaultNote: "8443 with TLS; with protocol native 9000, or 9440 with TLS",
		Help:        "Port of the HTTP interface, or of the native one with protocol native.",
		apply:       func(o *chstate.Options, v value) { o.Port = v.whole }},
	{Name: "database",
		Help:  "Database that the login uses; required. The tables lie in schema, whatever this is.",
		apply: func(o *chstate.Options, v value) { o.Database = v.text }},
	{Name: "user",
		Help:  "User that logs in; required, unless there is an access token.",
		apply: func(o *chstate.Options, v value) { o.User = v.text }},
	{Name: "password", Secret: true,
		Help:  "The user's password.",
		apply: func(o *chstate.Options, v value) { o.Password = v.text }},
	{Name: "secure", Kind: Switch, Default: "false",
		DefaultNote: "true with port 443 or 8443, and for hosts under .clickhouse.cloud",
		Help:        "Use TLS.",
		apply:       func(o *chstate.Options, v value) { o.Secure = v.on }},
	{Name: "schema", Default: "meltano",
		Help:  "Database in which the tables lie.",
		apply: func(o *chstate.Options, v value) { o.Schema = v.text }},
	{Name: "table", Default: "state",
		Help:  "Name of the state table; the lock's and the history's are named after it.",
		apply: func(o *chstate.Options, v value) { o.Table = v.text }},
	{Name: "protocol", Kind: Choice, Choices: []string{"http", "native"}, Default: "http",
		Help:  "How to talk to the server.",
		apply: func(o *chstate.Options, v value) { o.Protocol = v.text }},
	{Name: "create_tables", Kind: Choice, Choices: []string{"auto", "never"}, Default: "auto",
		Help:  "auto lets the first write make missing tables; never sends no DDL.",
		apply: func(o *chstate.Options, v value) { o.CreateTables = v.text }},
	{Name: "async_insert", Kind: Switch, Default: "false",
		Help:  "Let the server gather the inserts of very many writers; each still waits until it is stored.",
		apply: func(o *chstate.Options, v value) { o.AsyncInsert = v.on }},
	{Name: "password_file", Kind: Path,
		Help: "File that holds the password; a line break at its end is cut."},
	{Name: "access_token", Secret: true,
		Help:  "JSON Web Token for ClickHouse Cloud, in place of user and password.",
		apply: func(o *chstate.Options, v value) { o.AccessToken = v.text }},
	{Name: "verify", Kind: Switch, Default: "true",
		Help:  "Check the server's certificate.",
		apply: func(o *chstate.Options, v value) { o.TLS.SkipVerify = !v.on }},
	{Name: "ca_cert", Kind: Path,
		Help:  "PEM file of the authorities that may have signed the server's certificate.",
		apply: func(o *chstate.Options, v value) { o.TLS.CACert = v.text }},
	{Name: "client_cert", Kind: Path,
		Help:  "PEM file of a certificate to show to the server.",
		apply: func(o *chstate.Options, v value) { o.TLS.ClientCert = v.text }},
	{Name: "client_cert_key", Kind: Path,
		Help:  "PEM file of that certificate's key.",
		apply: func(o *chstate.Options, v value) { o.TLS.ClientCertKey = v.text }},
	{Name: "server_host_name",
		Help:  "Name expected in the server's certificate, where it is not the host.",
		apply: func(o *chstate.Options, v value) { o.TLS.ServerHostName = v.text }},
	{Name: "proxy_path",
		Help: "Path before the HTTP interface, where a reverse proxy adds one.",
		apply: func(o *chstate.Options, v value) {
			if path := strings.Trim(v.text, "/"); path != "" {
				o.ProxyPath = "/" + path
			}
		}},
	{Name: "http_proxy", DefaultNote: "HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment",
		Help:  "URL of a proxy to go through.",
		apply: func(o *chstate.Options, v value) { o.HTTPProxy = v.text }},
	{Name: "connect_timeout", Kind: Whole, Min: 1, Max: maxSeconds, Default: "10",
		Help:  "Seconds that one attempt to connect may take.",
		apply: func(o *chstate.Options, v value) { o.ConnectTimeout = time.Duration(v.whole) * time.Second }},
	{Name: "send_receive_timeout", Kind: Whole, Min: 1, Max: maxSeconds, Default: "300",
		Help:  "Seconds that one request may take.",
		apply: func(o *chstate.Options, v value) { o.SendReceiveTimeout = time.Duration(v.whole) * time.Second }},
	{Name: "cluster",
		Help:  "Cluster on which the tables are made (ON CLUSTER).",
		apply: func(o *chstate.Options, v value) { o.Cluster = v.text }},
	{Name: "engine", Default: "auto",
		Help: "Engine of the tables, such as ReplicatedReplacingMergeTree; auto lets the server's set-up decide.",
		apply: func(o *chstate.Options, v value) {
			if v.text != "auto" {
				o.Engine = v.text
			}
		}},
	{Name: "lock_strategy", Kind: Choice, Choices: []string{"auto", "table", "keeper", "settle"}, Default: "auto",
		Help:  "Where claims are written: an ordinary table, or Keeper (auto: Keeper where new tables are replicated and KeeperMap is allowed); settle only for replicas that give neither quorum nor Keeper.",
		apply: func(o *chstate.Options, v value) { o.Lock.Strategy = v.text }},
	{Name: "lock_settle_seconds", Kind: Seconds, Min: 0.001, Max: maxSeconds, Default: "1.0",
		Help:  "Wait of lock strategy settle between announcing a claim and looking; the lease must be four times as long or more.",
		apply: func(o *chstate.Options, v value) { o.Lock.Settle = v.duration }},
	{Name: "lock_wait_seconds", Kind: Seconds, Max: maxSeconds, Default: "30",
		Help:  "How long to wait for another's lock before giving up; 0 gives up at once.",
		apply: func(o *chstate.Options, v value) { o.Lock.Wait = orNone(v.duration) }},
	{Name: "lock_linger_seconds", Kind: Seconds, Max: maxSeconds, Default: "1.0",
		Help:  "How long a released lock is kept for the same process's next update; 0 does not keep it.",
		apply: func(o *chstate.Options, v value) { o.Lock.Linger = orNone(v.duration) }},
	{Name: "history_days", Kind: Whole, Max: 36500, Default: "30",
		Help: "Days that replaced states are kept; 0 turns history off.",
		apply: func(o *chstate.Options, v value) {
			o.HistoryDays = v.whole
			if v.whole == 0 {
				o.HistoryDays = -1 // in Options zero means the default
			}
		}},
	{Name: "lock_timeout_seconds", MeltanosOwn: true, Kind: Whole, Min: 1, Max: maxLease, Default: "10",
		Help:  "Lease: how long an id stays locked after its holder's machine vanished.",
		apply: func(o *chstate.Options, v value) { o.Lock.Lease = time.Duration(v.whole) * time.Second }},
	{Name: "lock_retry_seconds", MeltanosOwn: true, Kind: Whole, Min: 1, Max: maxSeconds, Default: "1",
		Help:  "Longest pause between two looks at a lock that is waited for.",
		apply: func(o *chstate.Options, v value) { o.Lock.Retry = time.Duration(v.whole) * time.Second }},
}

// orNone says "none at all" in the words of chstate.Options, where zero means the default.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}
