package clickhouse

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/chstate/chstate/lock"
)

// Config says where the tables are and how they are reached. Every field is
// resolved: zero values are taken as they are, defaults belong to the caller.
type Config struct {
	Protocol string // "http" or "native"
	Host     string // name or address; IPv6 with or without brackets
	Port     int
	Secure   bool // TLS
	// Database is only named in messages: every statement qualifies its tables
	// with Schema, and a session database that does not exist would be an
	// error on each of them.
	Database                    string
	User, Password, AccessToken string

	SkipVerify                        bool
	CACert, ClientCert, ClientCertKey string // paths of PEM files
	ServerHostName                    string // name in the certificate, where it is not Host

	ProxyPath string // goes before the HTTP interface's path
	HTTPProxy string // URL; empty: HTTP_PROXY, HTTPS_PROXY and NO_PROXY

	ConnectTimeout     time.Duration // one attempt to connect
	SendReceiveTimeout time.Duration // one request
	ServerSettings     map[string]string

	Schema, Table   string
	CreateTables    bool
	Cluster, Engine string
	AsyncInsert     bool
	HistoryDays     int // 0: no history table
	// LockStrategy says where the lock's log is: "table", "settle" (the same
	// table), "keeper", or "auto": in Keeper where the tables are replicated
	// and the KeeperMap table was made with them.
	LockStrategy string

	// RetryFor is how long a failure that passes by itself is retried at most;
	// the context bounds it too.
	RetryFor time.Duration
	Logger   *slog.Logger // nil drops notices
	// Progress is told by Clear how many states are gone, of how many; nil drops it.
	Progress func(done, total int)
}

// DB is one set of tables. It may be used by many goroutines at once.
type DB struct {
	cfg       Config
	log       *slog.Logger
	names     names
	conn      driver.Conn
	places    places
	transport *http.Transport // nil for the native protocol

	warming chan struct{} // holds one token while somebody warms
	failure error         // of the newest attempt to warm; guarded by the token
	server  atomic.Pointer[server]
	left    leftOut

	toldMissing atomic.Bool // that there is no table to read from
	toldWait    atomic.Bool // that the server is waited for, since it last answered
}

// Open checks the configuration, the files of TLS included. It does not connect.
func Open(cfg Config) (*DB, error) {
	db := &DB{cfg: cfg, log: cfg.Logger, names: cfg.names(), warming: make(chan struct{}, 1), places: make(places, workConns)}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	if err := db.connector(); err != nil {
		return nil, err
	}
	return db, nil
}

// Close ends the connections.
func (db *DB) Close() error {
	err := db.conn.Close()
	if db.transport != nil {
		db.transport.CloseIdleConnections()
	}
	return err
}

// Target names the server for messages, without secrets:
// "http://ch:8123 (database analytics)".
func (db *DB) Target() string { return db.cfg.target() }

func (c Config) target() string {
	scheme := c.Protocol
	if c.Secure {
		scheme = map[string]string{"http": "https", "native": "native+tls"}[c.Protocol]
	}
	s := scheme + "://" + c.address()
	if c.ProxyPath != "" {
		s += "/" + strings.Trim(c.ProxyPath, "/")
	}
	if c.Database != "" {
		s += " (database " + c.Database + ")"
	}
	return s
}

func (c Config) address() string {
	return net.JoinHostPort(strings.Trim(c.Host, "[]"), strconv.Itoa(c.Port))
}

// Prepare connects, looks at the server's version, settings and tables, and
// makes the tables that are missing where that is allowed. It does so once; a
// failure is tried again by the next call. Every method that writes calls it.
func (db *DB) Prepare(ctx context.Context) error {
	_, err := db.ready(ctx)
	return err
}

// Warm is Prepare, save that it makes and changes nothing: where something has
// to be made, that is left to the first call that needs it.
func (db *DB) Warm(ctx context.Context) error {
	_, err := db.once(ctx, func(ctx context.Context) (*server, error) {
		s, err := db.survey(ctx)
		if err != nil || db.halfMigrated(s) || db.adopt(s) != nil {
			return nil, err
		}
		return s, nil
	})
	return err
}

// ready is Prepare for those who need what it found.
func (db *DB) ready(ctx context.Context) (*server, error) { return db.once(ctx, db.prepare) }

// once gives what was found of the server, or has look find it: one caller at a
// time does, the others wait for it.
func (db *DB) once(ctx context.Context, look func(context.Context) (*server, error)) (*server, error) {
	if s := db.server.Load(); s != nil {
		return s, nil
	}
	waited := false
	select {
	case db.warming <- struct{}{}:
	default:
		waited = true
		select {
		case db.warming <- struct{}{}:
		case <-ctx.Done():
			return nil, db.interrupted(ctx)
		}
	}
	defer func() { <-db.warming }()
	if s := db.server.Load(); s != nil {
		return s, nil
	}
	if waited && db.failure != nil {
		// Whoever waited for the attempt that failed need not wait as long again.
		return nil, db.failure
	}
	s, err := look(ctx)
	db.failure = nil
	if err != nil {
		if ctx.Err() == nil {
			db.failure = err
		}
		return nil, err
	}
	if s != nil {
		db.server.Store(s)
	}
	return s, nil
}

// ServerVersion gives the server's version, "25.8.3.66".
func (db *DB) ServerVersion(ctx context.Context) (string, error) {
	s, err := db.ready(ctx)
	if err != nil {
		return "", err
	}
	return s.version, nil
}

// Skew is how far the clocks of the servers that answer may lie apart: 0 on
// one server, a minute where several replicas answer. It is known after Warm.
func (db *DB) Skew() time.Duration {
	if s := db.server.Load(); s != nil && (s.replicated() || s.keeper) {
		return time.Minute
	}
	return 0
}

// Row is one state as the table keeps it.
type Row struct {
	ID                 string
	Partial, Completed []byte // JSON text, byte for byte; nil is NULL
	UpdatedAt          lock.Millis
}

// MaxIDBytes is the longest state id, and the longest key of a lock, that is
// taken: the id is part of statements, and servers bound those (max_query_size,
// 256 KiB unless configured otherwise).
const MaxIDBytes = 32 << 10

func checkIDs(ids ...string) error {
	for _, id := range ids {
		if id == "" {
			return &Error{Kind: Invalid, Reason: "the state id is empty", Advice: "name a state id"}
		}
		if len(id) > MaxIDBytes {
			return &Error{
				Kind:   Invalid,
				Reason: fmt.Sprintf("the state id %.20q… has %d bytes; ids of up to %d bytes are kept", id, len(id), MaxIDBytes),
				Advice: "use a shorter state id or --state-id-suffix",
			}
		}
	}
	return nil
}
