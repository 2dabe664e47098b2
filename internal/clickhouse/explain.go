package clickhouse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ClickHouse's error codes that mean something here.
const (
	codeUnknownTable      = 60
	codeTableExists       = 57
	codeUnknownDatabase   = 81
	codeTableDropped      = 218
	codeUnknownSetting    = 115
	codeReadOnly          = 164
	codeUnfinished        = 341
	codeConstraint        = 452
	codeAccessDenied      = 497
	codeProjectionForbids = 344
)

// codeNames has the symbolic names of codes, for servers and protocols that
// send the number alone.
var codeNames = map[int]string{
	16: "NO_SUCH_COLUMN_IN_TABLE", 47: "UNKNOWN_IDENTIFIER", 48: "NOT_IMPLEMENTED", 53: "TYPE_MISMATCH",
	57: "TABLE_ALREADY_EXISTS", 60: "UNKNOWN_TABLE", 62: "SYNTAX_ERROR", 81: "UNKNOWN_DATABASE", 82: "DATABASE_ALREADY_EXISTS",
	115: "UNKNOWN_SETTING", 159: "TIMEOUT_EXCEEDED", 164: "READONLY", 181: "ILLEGAL_FINAL",
	192: "UNKNOWN_USER", 193: "WRONG_PASSWORD", 194: "REQUIRED_PASSWORD", 195: "IP_ADDRESS_NOT_ALLOWED",
	201: "QUOTA_EXCEEDED", 202: "TOO_MANY_SIMULTANEOUS_QUERIES", 225: "NO_ZOOKEEPER", 236: "ABORTED",
	241: "MEMORY_LIMIT_EXCEEDED", 242: "TABLE_IS_READ_ONLY", 243: "NOT_ENOUGH_SPACE", 252: "TOO_MANY_PARTS",
	285: "TOO_FEW_LIVE_REPLICAS", 286: "UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE", 289: "REPLICA_IS_NOT_IN_QUORUM",
	319: "UNKNOWN_STATUS_OF_INSERT", 341: "UNFINISHED", 344: "SUPPORT_IS_DISABLED", 452: "SETTING_CONSTRAINT_VIOLATION",
	497: "ACCESS_DENIED", 516: "AUTHENTICATION_FAILED", 999: "KEEPER_EXCEPTION",
}

// passingCodes are the failures of a server that pass by themselves.
var passingCodes = map[int]string{
	202: "the server runs as many queries as it may",
	225: "the server has lost its Keeper",
	236: "the server is shutting down",
	242: "the table is read-only for now, as it is when a replica has lost its Keeper",
	252: "the table has too many parts: inserts come faster than merges",
	285: "too few replicas are alive for a quorum",
	286: "an earlier insert has not reached its quorum yet",
	289: "the replica lags behind the quorum",
	319: "the server does not know whether its insert reached the replicas",
	999: "the server has trouble with its Keeper",
}

// explain turns whatever clickhouse-go gave into an Error.
func (db *DB) explain(ctx context.Context, err error) *Error {
	if ours := explained(err); ours != nil {
		return ours
	}
	if ctx.Err() != nil {
		return db.interrupted(ctx)
	}
	e := &Error{Kind: Connect, Target: db.Target(), Err: cause(err)}
	var exception *clickhouse.Exception
	var status *clickhouse.HTTPError
	var page *pageError
	switch {
	case errors.As(err, &exception):
		db.explainException(e, exception)
	case errors.As(err, &page):
		db.explainPage(e, page)
	case errors.As(err, &status):
		db.explainStatus(e, status)
	default:
		db.explainNetwork(e, err)
	}
	return e
}

// cause drops net/http's wrapping, which repeats the URL with its parameters.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (db *DB) explainException(e *Error, x *clickhouse.Exception) {
	e.Kind, e.Code = Server, int(x.Code)
	e.Reason = fmt.Sprintf("code %d %s: %s", e.Code, codeName(x), exceptionText(x))
	if why, ok := passingCodes[e.Code]; ok && !e.lostRace() {
		e.Kind, e.passing = Busy, true
		e.Advice = why + "; try again later, or see the server's log"
		return
	}
	switch e.Code {
	case 516, 192, 193, 194, 195:
		e.Kind = Login
		e.Advice = fmt.Sprintf("check user %q and its password, and that it may log in from here", db.cfg.User)
	case codeAccessDenied:
		e.Kind = Denied
		e.Advice = db.grantAdvice(x.Message)
	case codeReadOnly:
		e.Kind = ReadOnly
		e.Advice = fmt.Sprintf("user %q is in readonly mode; give it a profile without readonly to write states", db.cfg.User)
	case codeConstraint, codeUnknownSetting:
		e.Kind = ReadOnly
		e.Advice = "the server does not let this user change that setting, which a safe write needs; lift the constraint in the user's profile"
	case codeUnknownTable, codeUnknownDatabase: // the reason names it; dropped just now, for what is missing is made
		e.Kind = Schema
		e.Advice = "was it dropped? The next command makes what is missing, or `chstate init` does"
	case 16, 47, 53, 181:
		e.Kind = Schema
		e.Advice = fmt.Sprintf("see what `SHOW CREATE TABLE %s` says, and what `chstate init --print-sql` would make", db.names.State())
	case codeProjectionForbids:
		e.Advice = fmt.Sprintf("rows of a table with projections cannot be deleted; drop the projections of %s, or set its lightweight_mutation_projection_mode to 'drop'",
			db.names.plain(db.names.state))
	case 241, 243:
		e.Advice = "the server is short of memory or disk; see its log"
	}
}

func codeName(x *clickhouse.Exception) string {
	if name := codeNames[int(x.Code)]; name != "" {
		return name
	}
	if x.Name != "" && x.Name != "DB::Exception" {
		return x.Name
	}
	return "exception"
}

var (
	exceptionHead = regexp.MustCompile(`^(Code: \d+\. )?(DB::Exception: )+`)
	exceptionTail = regexp.MustCompile(`\s*(\([A-Z][A-Z0-9_]+\))?\s*(\(version [^()]*(\([^()]*\))?[^()]*\))?\s*(\([A-Z][A-Z0-9_]+\))?\s*$`)
)

// exceptionText is the server's sentence without what is said elsewhere.
func exceptionText(x *clickhouse.Exception) string {
	s := exceptionHead.ReplaceAllString(strings.TrimSpace(x.Message), "")
	s = exceptionTail.ReplaceAllString(s, "")
	return strings.TrimSuffix(oneLine(s), ".")
}

var neededGrant = regexp.MustCompile(`(?s)have (?:the )?grant (.+?)(?:\.\s|\.$|$)`)

func (db *DB) grantAdvice(message string) string {
	m := neededGrant.FindStringSubmatch(exceptionTail.ReplaceAllString(message, ""))
	if m == nil {
		return fmt.Sprintf("ask an administrator for the grant; `chstate init --print-sql` prints all that user %q needs", db.cfg.User)
	}
	return fmt.Sprintf("ask an administrator for: GRANT %s TO %s; `chstate init --print-sql` prints all that is needed",
		strings.TrimSuffix(oneLine(m[1]), "."), quoteIdent(db.cfg.User))
}

func (db *DB) explainPage(e *Error, page *pageError) {
	e.Reason = page.Error()
	e.passing = page.status == http.StatusServiceUnavailable
	if e.passing {
		e.Kind = Busy
	}
	e.Advice = "check host, port and proxy_path: a proxy, a login portal or another program answers there" + db.proxyHint()
}

func (db *DB) explainStatus(e *Error, status *clickhouse.HTTPError) {
	text := oneLine(strings.TrimPrefix(status.Err.Error(), "response body: "))
	e.Reason = fmt.Sprintf("HTTP %d instead of an answer: %s", status.StatusCode, text)
	switch {
	case strings.Contains(text, "clickhouse-client program"):
		e.Reason = fmt.Sprintf("port %d is for ClickHouse's native protocol, not for HTTP", db.cfg.Port)
		e.Advice = "use port 8123 (8443 with secure=true), or protocol=native"
	case status.StatusCode == http.StatusServiceUnavailable:
		e.Kind, e.passing = Busy, true
		e.Advice = "the server, or a load balancer before it, is not available; try again later" + db.proxyHint()
	case status.StatusCode == http.StatusUnauthorized, status.StatusCode == http.StatusForbidden:
		e.Kind = Login
		e.Advice = fmt.Sprintf("check user %q and its password%s", db.cfg.User, db.proxyHint())
	case status.StatusCode == http.StatusProxyAuthRequired:
		e.Advice = "the proxy wants a login: put user and password into the proxy's URL" + db.proxyHint()
	case strings.Contains(text, "HTTP request to an HTTPS server"), strings.Contains(text, "plain HTTP request was sent to HTTPS"):
		e.Advice = "this port speaks TLS: set secure=true"
	default:
		e.Advice = "check host, port and proxy_path: this is not ClickHouse's HTTP interface" + db.proxyHint()
	}
}

func (db *DB) proxyHint() string {
	if p := db.via(); p != "" {
		return fmt.Sprintf(" (requests go through the proxy %s; put the host into NO_PROXY if it is reached directly)", p)
	}
	return ""
}

func (db *DB) explainNetwork(e *Error, err error) {
	e.Reason = oneLine(cause(err).Error())
	if db.explainTLS(e, err) {
		return
	}
	var dns *net.DNSError
	var netErr net.Error
	text := err.Error()
	switch {
	case errors.As(err, &dns):
		e.Reason = fmt.Sprintf("the host %q is not known", dns.Name)
		e.passing = dns.IsTemporary || dns.IsTimeout
		e.Advice = "check the host's name" + db.proxyHint()
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Reason, e.passing = "connection refused", true
		e.Advice = "check that the server is running, and that this is its port" + db.portHint() + db.proxyHint()
	case strings.Contains(text, "malformed HTTP response"), strings.Contains(text, "malformed HTTP status"):
		e.Reason = "the answer is not HTTP"
		e.Advice = "check the port" + db.portHint()
	case strings.Contains(text, "unexpected packet"):
		e.Reason = "the answer is not ClickHouse's native protocol"
		e.Advice = "use port 9000 (9440 with secure=true) for protocol=native" + db.portHint()
	case connectionCut(err):
		e.Reason = "the connection was cut"
		e.Advice = fmt.Sprintf("see the server's log, and check that this port is for protocol=%s with secure=%t", db.cfg.Protocol, db.cfg.Secure) +
			db.portHint() + db.proxyHint()
		e.passing, e.cut = !db.oddPort(), true
	case errors.Is(err, clickhouse.ErrConnectionClosed):
		e.Kind, e.Reason, e.Advice = Server, "the store is closed", ""
	case errors.Is(err, clickhouse.ErrAcquireConnTimeout):
		e.Kind, e.Reason, e.Advice = Busy, "too many statements at once, all still running", "see system.processes on the server"
	case errors.As(err, &netErr) && netErr.Timeout():
		e.Reason, e.passing = "no answer in time", true
		e.Advice = "check host and port, and whether a firewall is between" + db.portHint() + db.proxyHint()
	case strings.Contains(text, "block decode"), strings.Contains(text, "readData"):
		e.Reason = "the answer cannot be read: " + e.Reason
		e.Advice = "check that this port is ClickHouse's HTTP interface" + db.portHint() + db.proxyHint()
	default:
		e.Advice = "check host and port" + db.portHint() + db.proxyHint()
	}
}

// connectionCut recognises the many names of a connection that the other side
// has ended.
func connectionCut(err error) bool {
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, known) {
			return true
		}
	}
	text := err.Error()
	return strings.Contains(text, "server closed idle connection") || // net/http keeps its error to itself
		strings.Contains(text, "forcibly closed") // Windows
}

// explainTLS recognises a connection that failed for its certificate, or for
// one side only speaking TLS.
func (db *DB) explainTLS(e *Error, err error) bool {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var certificate x509.CertificateInvalidError
	var record tls.RecordHeaderError
	text := err.Error()
	switch {
	case errors.As(err, &hostname):
		e.Reason = "the server's certificate is for another name: " + e.Reason
		e.Advice = "connect by that name, or set server_host_name to it"
	case errors.As(err, &authority):
		e.Reason = "the server's certificate is signed by an authority that is not trusted here"
		e.Advice = "set ca_cert to that authority's certificate (verify=false trusts any, and anybody between)"
	case errors.As(err, &certificate):
		e.Reason = "the server's certificate is not valid: " + e.Reason
		e.Advice = "renew it, and check this machine's clock"
	case errors.As(err, &record), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		e.Reason = fmt.Sprintf("port %d does not speak TLS", db.cfg.Port)
		e.Advice = "set secure=false" + db.portHint()
	case strings.Contains(text, "remote error: tls:") && strings.Contains(text, "certificate"):
		e.Reason = "the server does not accept our certificate: " + e.Reason
		e.Advice = "set client_cert and client_cert_key to one that it trusts"
	case strings.Contains(text, "tls: "):
		e.Reason = "no TLS connection came about: " + e.Reason
		e.Advice = "check secure and the port" + db.portHint()
	default:
		return false
	}
	return true
}

// usual are ClickHouse's ports and what is spoken there.
var usual = map[int]struct {
	protocol string
	secure   bool
}{8123: {"http", false}, 8443: {"http", true}, 443: {"http", true}, 9000: {"native", false}, 9440: {"native", true}}

// oddPort says whether something else is usually spoken on this port.
func (db *DB) oddPort() bool {
	u, ok := usual[db.cfg.Port]
	return ok && (u.protocol != db.cfg.Protocol || u.secure != db.cfg.Secure)
}

// portHint names the settings that belong to a usual port, when they differ.
func (db *DB) portHint() string {
	if !db.oddPort() {
		return ""
	}
	u := usual[db.cfg.Port]
	ports := map[bool]int{false: 8123, true: 8443}
	if db.cfg.Protocol == "native" {
		ports = map[bool]int{false: 9000, true: 9440}
	}
	return fmt.Sprintf("; port %d is usually protocol=%s with secure=%t: set these, or use port %d",
		db.cfg.Port, u.protocol, u.secure, ports[db.cfg.Secure])
}
