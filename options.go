package chstate

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/chstate/chstate/lock"
)

// Options says where the state is kept and how it is locked. The zero value of
// each field means its default, so that Options{Host: "ch", User: "etl"} is
// enough; where a zero would be meaningful of itself, a negative value stands for it.
type Options struct {
	// Host is a name or address; IPv6 with or without brackets. Default "localhost".
	Host string
	// Port defaults to 8123, to 8443 with TLS; for protocol "native" to 9000 and 9440.
	Port int
	// Protocol is "http" (default) or "native".
	Protocol string
	// Secure turns TLS on.
	Secure bool
	// Database is only named in messages: statements qualify every table with Schema.
	Database string
	// User and Password log in; AccessToken, a JWT for ClickHouse Cloud, takes their place.
	User, Password, AccessToken string

	TLS TLS

	// ProxyPath goes before the HTTP interface's path ("/clickhouse").
	ProxyPath string
	// HTTPProxy is a proxy's URL; empty means HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment.
	HTTPProxy string
	// ConnectTimeout (default 10 s) bounds one attempt to connect, SendReceiveTimeout (default 300 s) one request.
	ConnectTimeout, SendReceiveTimeout time.Duration
	// ServerSettings are sent with every statement (URI parameters ch_<setting>).
	ServerSettings map[string]string

	// Schema (default "meltano") and Table (default "state") name the tables:
	// <schema>.<table>, <table>_lock and <table>_history.
	Schema, Table string
	// CreateTables is "auto" (default: what is missing is made by the first write) or "never" (no DDL is sent).
	CreateTables string
	// Cluster adds ON CLUSTER to DDL; Engine overrides the tables' engine name.
	Cluster, Engine string
	// AsyncInsert lets the server gather inserts of many writers; an insert still waits to be stored.
	AsyncInsert bool
	// HistoryDays is how long replaced states are kept; default 30, negative turns history off.
	HistoryDays int

	Lock LockOptions

	// Command and Version tell other waiters what holds a lock ("meltano run …", "1.0.0").
	Command, Version string
	// Logger gets notices (waiting for a lock, retrying), and at level Debug each
	// statement with its time; nil drops them.
	Logger *slog.Logger
	// Progress, where it is set, is told by Export, SetAll and ClearAll how many
	// states are done, of how many (0: not known). It must not block.
	Progress func(done, total int)
}

// TLS says how the server's certificate is checked, and what certificate to show it.
type TLS struct {
	// SkipVerify accepts any certificate (setting verify=false).
	SkipVerify bool
	// CACert, ClientCert and ClientCertKey are paths of PEM files.
	CACert, ClientCert, ClientCertKey string
	// ServerHostName is the name expected in the certificate, where it is not Host.
	ServerHostName string
}

// LockOptions are the times of the lock; see package lock for what they mean.
type LockOptions struct {
	// Strategy says where claims are written: "table", an ordinary table;
	// "keeper", a KeeperMap table; "auto" (default), Keeper where new tables are
	// replicated and KeeperMap is allowed; "settle", a table on replicas that
	// can give neither quorum nor Keeper.
	Strategy string
	// Lease is how long a vanished holder keeps an id (default 10 s, at most 120 s). Meltano's lock_timeout_seconds.
	Lease time.Duration
	// Retry is the longest pause between two looks of a waiter (default 1 s). Meltano's lock_retry_seconds.
	Retry time.Duration
	// Wait is how long to wait for a lock before giving up with a LockedError (default 30 s).
	Wait time.Duration
	// Linger keeps a released hold for the next update of the same id (default 1 s, negative: not at all).
	Linger time.Duration
	// Settle is the wait of strategy "settle" between announcing and looking (default 1 s).
	Settle time.Duration
}

// withDefaults fills what was left out.
func (o Options) withDefaults() Options {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	dur := func(d *time.Duration, v time.Duration) {
		switch {
		case *d == 0:
			*d = v
		case *d < 0:
			*d = 0
		}
	}
	def(&o.Host, "localhost")
	def(&o.Protocol, "http")
	def(&o.Schema, "meltano")
	def(&o.Table, "state")
	def(&o.CreateTables, "auto")
	def(&o.Lock.Strategy, "auto")
	if o.Port == 0 {
		o.Port = DefaultPort(o.Protocol, o.Secure)
	}
	switch {
	case o.HistoryDays == 0:
		o.HistoryDays = 30
	case o.HistoryDays < 0:
		o.HistoryDays = 0
	}
	dur(&o.ConnectTimeout, 10*time.Second)
	dur(&o.SendReceiveTimeout, 300*time.Second)
	dur(&o.Lock.Lease, 10*time.Second)
	dur(&o.Lock.Retry, time.Second)
	dur(&o.Lock.Wait, 30*time.Second)
	dur(&o.Lock.Linger, time.Second)
	dur(&o.Lock.Settle, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// DefaultPort gives ClickHouse's usual port for a protocol ("http" or "native"), with or without TLS.
func DefaultPort(protocol string, secure bool) int {
	switch {
	case protocol == "native" && secure:
		return 9440
	case protocol == "native":
		return 9000
	case secure:
		return 8443
	default:
		return 8123
	}
}

// checked fills the defaults in and refuses what cannot be used.
func (o Options) checked() (Options, error) {
	o = o.withDefaults()
	oneOf := func(name, value string, allowed ...string) error {
		if slices.Contains(allowed, value) {
			return nil
		}
		return &Error{
			Kind: ErrSettings, Reason: fmt.Sprintf("%s is %q", name, value),
			Advice: "use one of: " + strings.Join(allowed, ", "),
		}
	}
	if err := cmp.Or(
		oneOf("protocol", o.Protocol, "http", "native"),
		oneOf("create_tables", o.CreateTables, "auto", "never"),
		oneOf("lock_strategy", o.Lock.Strategy, "auto", "table", "keeper", "settle"),
	); err != nil {
		return o, err
	}
	if o.Lock.Lease > lock.MaxLease || o.Lock.Lease < minLease {
		return o, &Error{
			Kind: ErrSettings, Reason: fmt.Sprintf("the lease (lock_timeout_seconds) is %s", o.Lock.Lease),
			Advice: fmt.Sprintf("use %s to %s: a machine that vanishes blocks its ids for that long", minLease, lock.MaxLease),
		}
	}
	if settle := o.Lock.Settle; o.Lock.Strategy == "settle" && o.Lock.Lease < lock.SettlesInLease*settle {
		return o, &Error{
			Kind: ErrSettings, Reason: fmt.Sprintf("the lease (lock_timeout_seconds) of %s is too short for pauses (lock_settle_seconds) of %s", o.Lock.Lease, settle),
			Advice: fmt.Sprintf("make it %s or more: taking a lock pauses twice", lock.SettlesInLease*settle),
		}
	}
	return o, nil
}

// minLease leaves time for a renewal every third of it.
const minLease = time.Second
