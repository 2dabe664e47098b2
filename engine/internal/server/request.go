package server

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// request is what a client asks for, read from the URL and the headers.
type request struct {
	queryID  string
	query    string // the URL's part of the statement; the body's follows it
	database string
	format   string // for results without a FORMAT clause
	revision int    // of the native protocol that the client understands; 0 for none

	settings []setting
	params   []chdb.Param

	session        string
	sessionTimeout time.Duration
	sessionCheck   bool
	closeSession   bool

	waitEnd    bool
	compress   bool // answer in ClickHouse's own framing
	decompress bool // the body comes in it
	readOnly   bool // a GET: nothing may change
}

// setting is one of the engine's settings, given in the URL.
type setting struct{ name, value string }

// reserved are the URL's parameters that mean something to the HTTP interface
// alone; all others are settings.
var reserved = map[string]bool{
	"": true, "query": true, "database": true, "default_format": true, "query_id": true,
	"user": true, "password": true, "quota_key": true, "role": true, "stacktrace": true,
	"buffer_size": true, "wait_end_of_query": true, "compress": true, "decompress": true,
	"session_id": true, "session_timeout": true, "session_check": true, "close_session": true,
	"client_protocol_version": true, "http_method": true,
}

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

const (
	defaultSessionTimeout = 60 * time.Second
	maxSessionTimeout     = time.Hour
)

// parseRequest reads the parameters. Of multipart forms, external tables' own
// parameters (<name>_structure and so on) are not settings.
func parseRequest(r *http.Request, values url.Values, multipart bool) (*request, error) {
	q := &request{
		queryID:      values.Get("query_id"),
		query:        values.Get("query"),
		database:     firstOf(r.Header.Get("X-ClickHouse-Database"), values.Get("database")),
		format:       firstOf(r.Header.Get("X-ClickHouse-Format"), values.Get("default_format"), "TabSeparated"),
		session:      values.Get("session_id"),
		sessionCheck: values.Get("session_check") == "1",
		closeSession: values.Get("close_session") == "1",
		readOnly:     r.Method == http.MethodGet || r.Method == http.MethodHead,
	}
	if q.queryID == "" {
		q.queryID = uuid.NewString()
	}
	var err error
	flag := func(name string) bool {
		on, flagErr := parseFlag(values, name)
		if flagErr != nil && err == nil {
			err = flagErr
		}
		return on
	}
	q.waitEnd = flag("wait_end_of_query") || flag("http_wait_end_of_query")
	q.compress = flag("compress")
	q.decompress = flag("decompress")
	if err != nil {
		return nil, err
	}
	if text := values.Get("client_protocol_version"); text != "" {
		if q.revision, err = strconv.Atoi(text); err != nil || q.revision < 0 {
			return nil, codeBadArguments.errorf("client_protocol_version is %q, not a number", text)
		}
	}
	if q.sessionTimeout, err = parseSessionTimeout(values.Get("session_timeout")); err != nil {
		return nil, err
	}
	return q, q.readSettings(values, multipart)
}

func (q *request) readSettings(values url.Values, multipart bool) error {
	for name, all := range values {
		value := all[len(all)-1]
		switch {
		case strings.HasPrefix(name, "param_"):
			q.params = append(q.params, chdb.Param{Name: strings.TrimPrefix(name, "param_"), Value: value})
		case reserved[name]:
		case multipart && (strings.HasSuffix(name, "_structure") || strings.HasSuffix(name, "_format") || strings.HasSuffix(name, "_types")):
		case !settingName.MatchString(name):
			return codeUnknownSetting.errorf("Unknown setting '%s'", name)
		default:
			q.settings = append(q.settings, setting{name, value})
		}
	}
	// The URL's order is lost in a map; any fixed order will do.
	slices.SortFunc(q.settings, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	return nil
}

// setting returns the value that the URL gives a setting, or other.
func (q *request) setting(name, other string) string {
	for _, s := range q.settings {
		if s.name == name {
			return s.value
		}
	}
	return other
}

func (q *request) settingOn(name string) bool {
	value := strings.ToLower(q.setting(name, "0"))
	return value == "1" || value == "true"
}

func parseFlag(values url.Values, name string) (bool, error) {
	switch text := strings.ToLower(values.Get(name)); text {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, codeBadArguments.errorf("%s is %q; it takes 0 or 1", name, text)
	}
}

func parseSessionTimeout(text string) (time.Duration, error) {
	if text == "" {
		return defaultSessionTimeout, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, codeSessionTimeout.errorf("Invalid session timeout: '%s'", text)
	}
	timeout := time.Duration(seconds) * time.Second
	if timeout > maxSessionTimeout {
		return 0, codeSessionTimeout.errorf("Session timeout '%s' is larger than max_session_timeout: %.0f", text, maxSessionTimeout.Seconds())
	}
	return timeout, nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// statement is the whole text: the URL's part, a line end, the body.
func (q *request) statement(body io.Reader) io.Reader {
	if q.query == "" {
		return body
	}
	return io.MultiReader(strings.NewReader(q.query+"\n"), body)
}
