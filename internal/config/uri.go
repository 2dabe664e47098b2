package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chstate/chstate"
)

// URI is what clickhouse://user:password@host:port/database?parameters says.
// What it leaves out is zero.
type URI struct {
	Host           string // without the brackets of an IPv6 address
	Port           int
	User, Password string
	Database       string
	// Params are the settings given as query parameters, by name, not empty.
	Params map[string]string
	// ServerSettings are the parameters ch_<setting>, by setting.
	ServerSettings map[string]string
}

const (
	scheme     = "clickhouse"
	uriForm    = "write clickhouse://user:password@host:8123/database"
	serverPref = "ch_"
)

var (
	schemeText  = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)
	settingText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	namedSafely = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)
)

// ParseURI reads a state backend URI; uri.py does the same in Python, and both
// are held to testdata/uri_corpus.json.
//
// User, password, host and database are percent-decoded once: a + stays a plus,
// a lone % stays. The last @ ends the password, so that a raw @ or : in it
// works. A raw # / ? [ or ] does not; where the text hints at one, the error
// says to percent-encode it. No error shows a piece that may be of a password.
// It is a *chstate.Error of kind ErrSettings.
func ParseURI(s string) (URI, error) {
	u, bad := parseURI(s)
	if bad != nil {
		return URI{}, settingsError(bad, "", nil)
	}
	return u, nil
}

func parseURI(s string) (URI, *badValue) {
	u := URI{}
	s = strings.Trim(s, " \t\r\n")
	if !utf8.ValidString(s) {
		return u, &badValue{"the URI is not UTF-8", "percent-encode the UTF-8 form of what is not ASCII"}
	}
	if strings.ContainsFunc(s, isControl) {
		return u, &badValue{"the URI has a control character in it", "remove it, or percent-encode it"}
	}
	rest, bad := cutScheme(s)
	if bad != nil {
		return u, bad
	}
	if strings.Contains(rest, "#") {
		return u, raw("#")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(path, "@") {
		return u, raw("/")
	}
	params, badQuery := splitQuery(query)
	if badQuery != nil && strings.Contains(query, "@") {
		return u, badQuery // what follows makes no sense of a password cut in two
	}
	hostport := authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		hostport = authority[at+1:]
		if u.User, u.Password, bad = splitUser(authority[:at]); bad != nil {
			return u, bad
		}
	}
	if u.Host, u.Port, bad = splitHost(hostport); bad != nil {
		return u, bad
	}
	if badQuery != nil {
		return u, badQuery
	}
	path = strings.TrimSuffix(path, "/")
	if strings.Contains(path, "/") {
		return u, &badValue{"the URI's path is more than a database", uriForm}
	}
	if u.Database, bad = decode("database", path); bad != nil {
		return u, bad
	}
	return u, u.takeParams(params)
}

func cutScheme(s string) (rest string, bad *badValue) {
	given, rest, ok := strings.Cut(s, "://")
	given = lowerASCII(given)
	switch {
	case !ok || !schemeText.MatchString(given):
		return "", &badValue{"the URI does not begin with clickhouse://", uriForm}
	case given == scheme:
		return rest, nil
	}
	advice := uriForm
	switch given {
	case "http", "clickhouse+http", "clickhousedb", "clickhousedb+connect", "ch", "jdbc", "clickhouse+asynch":
		advice = "write clickhouse:// in its place"
	case "https", "clickhouses", "clickhouse+https", "chs":
		advice = "write clickhouse:// in its place, and ?secure=true at the end"
	case "tcp", "native", "clickhouse+native":
		advice = "write clickhouse:// in its place, and ?protocol=native at the end"
	}
	return "", &badValue{fmt.Sprintf("the URI's scheme is %s, not clickhouse", quote(given)), advice}
}

// raw is the error for a character that ends a URI's part although it seems
// to be meant as a piece of the password.
func raw(char string) *badValue {
	return &badValue{
		fmt.Sprintf("the URI seems to have a raw %s in its user or password", char),
		fmt.Sprintf("percent-encode it: write %%%02X in its place, or give the password in %s",
			char[0], "MELTANO_STATE_BACKEND_CLICKHOUSE_PASSWORD"),
	}
}

func splitUser(userinfo string) (user, password string, bad *badValue) {
	for _, char := range []string{"[", "]"} {
		if strings.Contains(userinfo, char) {
			return "", "", raw(char)
		}
	}
	user, password, _ = strings.Cut(userinfo, ":")
	if user, bad = decode("user", user); bad != nil {
		return "", "", bad
	}
	password, bad = decode("password", password)
	return user, password, bad
}

func splitHost(hostport string) (host string, port int, bad *badValue) {
	noHost := &badValue{"the URI's host is not a host name", uriForm + ", with an IPv6 address in brackets"}
	var portText string
	if inner, ok := strings.CutPrefix(hostport, "["); ok {
		var after string
		if host, after, ok = strings.Cut(inner, "]"); !ok {
			return "", 0, noHost
		}
		if portText, ok = strings.CutPrefix(after, ":"); !ok && after != "" {
			return "", 0, noHost
		}
		if host, bad = decode("host", host); bad != nil {
			return "", 0, bad
		}
		if !isIPv6(host) {
			return "", 0, noHost
		}
	} else {
		host, portText, _ = strings.Cut(hostport, ":")
		if strings.Contains(portText, ":") {
			return "", 0, &badValue{"the URI's host has more than one colon",
				"put an IPv6 address in brackets, such as [::1]; user and password stand before an @"}
		}
		if host, bad = decode("host", host); bad != nil {
			return "", 0, bad
		}
		if host != "" && !isHostName(host) {
			return "", 0, noHost
		}
	}
	if portText != "" {
		n, err := strconv.ParseUint(portText, 10, 16)
		if err != nil || n == 0 {
			// Not shown: where the @ was forgotten, this is the password.
			return "", 0, &badValue{"the URI's port is not a number from 1 to 65535", uriForm}
		}
		port = int(n)
	}
	return lowerHost(host), port, nil
}

func isIPv6(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is6()
}

// isHostName tells whether a text can be a name or an IPv4 address at all;
// names in other scripts are left to the resolver.
func isHostName(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/?#@[]\<>"^{|}%:,;&=+'()*!$`+"`", r)
	})
}

// lowerHost writes a name in lower case, but not an IPv6 zone, which is an interface's name.
func lowerHost(host string) string {
	name, zone, ok := strings.Cut(host, "%")
	if ok {
		return lowerASCII(name) + "%" + zone
	}
	return lowerASCII(name)
}

// lowerASCII leaves other alphabets alone, about which Go and Python differ.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, text)
}

// decode undoes percent-encoding once; a % that no two hex digits follow stays.
func decode(part, text string) (string, *badValue) {
	if !strings.Contains(text, "%") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	if !utf8.ValidString(b.String()) {
		return "", &badValue{fmt.Sprintf("the URI's %s decodes to bytes that are not UTF-8", part),
			"percent-encode its UTF-8 form, and a % as %25"}
	}
	return b.String(), nil
}

type param struct{ name, value string }

func (p param) isSecret() bool {
	return slices.Contains([]string{"password", "access_token", "http_proxy"}, p.name)
}

// splitQuery gives the parameters, their names known and their values still encoded.
func splitQuery(query string) ([]param, *badValue) {
	var params []param
	for piece := range strings.SplitSeq(query, "&") {
		if piece == "" {
			continue
		}
		name, text, ok := strings.Cut(piece, "=")
		if !isParam(name) {
			if strings.Contains(query, "@") {
				return nil, raw("?") // what looks like a parameter is a piece of the password
			}
			if slices.ContainsFunc(params, param.isSecret) {
				return nil, &badValue{"the URI has a parameter that is not known, after one that is secret",
					"write %26 for an & that belongs to the secret, or correct the name"}
			}
			if !ok {
				name = "" // not shown: it was not written as a parameter
			}
			return nil, unknownParam(name)
		}
		if strings.Contains(text, "@") && !mayHaveAt(name) {
			return nil, raw("?")
		}
		if !ok {
			return nil, &badValue{fmt.Sprintf("the URI's parameter %s has no value", name), "write " + name + "=value"}
		}
		if slices.ContainsFunc(params, func(p param) bool { return p.name == name }) {
			return nil, &badValue{fmt.Sprintf("the URI has the parameter %s twice", name), "keep one of them"}
		}
		params = append(params, param{name, text})
	}
	return params, nil
}

func isParam(name string) bool {
	if setting, ok := strings.CutPrefix(name, serverPref); ok {
		return settingText.MatchString(setting)
	}
	s, ok := find(name)
	return ok && s.Param() != ""
}

func mayHaveAt(name string) bool {
	return strings.HasPrefix(name, serverPref) ||
		slices.Contains([]string{"user", "password", "access_token", "http_proxy"}, name)
}

func (u *URI) takeParams(params []param) *badValue {
	u.Params, u.ServerSettings = map[string]string{}, map[string]string{}
	for _, p := range params {
		text, bad := decode("parameter "+p.name, p.value)
		if bad != nil {
			return bad
		}
		if setting, ok := strings.CutPrefix(p.name, serverPref); ok {
			u.ServerSettings[setting] = text
		} else if text != "" {
			u.Params[p.name] = text
		}
	}
	return nil
}

// otherNames are what people write who know the setting from elsewhere.
var otherNames = map[string]string{
	"username": "user", "pass": "password", "passwd": "password", "pwd": "password",
	"ssl": "secure", "tls": "secure", "https": "secure", "sslmode": "secure",
	"db": "database", "dbname": "database", "hostname": "host", "server": "host",
	"timeout": "connect_timeout", "dial_timeout": "connect_timeout", "read_timeout": "send_receive_timeout",
	"skip_verify": "verify", "token": "access_token", "jwt": "access_token",
}

func unknownParam(name string) *badValue {
	if !namedSafely.MatchString(name) {
		return &badValue{"the URI has a parameter that is not known",
			"take the names of the settings, and percent-encode what belongs to user or password"}
	}
	reason := fmt.Sprintf("the URI has a parameter %s, which is not known", quote(name))
	if s, ok := find(name); ok && s.Name != "uri" {
		return &badValue{reason, "set " + s.Key() + " instead, or " + s.Env()}
	}
	return &badValue{reason, "perhaps " + nearest(strings.ToLower(name)) + " is meant"}
}

// nearest gives the parameter that was probably meant: the one that is called
// so elsewhere, or begins so, or takes the fewest edits.
func nearest(name string) string {
	if known, ok := otherNames[name]; ok {
		return known
	}
	for _, s := range table {
		if s.Param() != "" && strings.HasPrefix(s.Name, name+"_") {
			return s.Name
		}
	}
	best, least := "", 0
	for _, s := range table {
		if s.Param() == "" {
			continue
		}
		if d := distance(name, s.Name); best == "" || d < least {
			best, least = s.Name, d
		}
	}
	return best
}

// distance is Levenshtein's, over bytes: names are ASCII.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// settingsError makes the error that every function here gives. from says
// where the value was given, "" for nothing to add.
func settingsError(bad *badValue, from string, cause error) error {
	reason := bad.reason
	if from != "" {
		reason += " (from " + from + ")"
	}
	return &chstate.Error{Kind: chstate.ErrSettings, Op: "read settings", Reason: reason, Advice: bad.advice, Err: cause}
}
