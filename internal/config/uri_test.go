package config

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chstate/chstate"
)

// corpusEntry is a URI with what must come of it, in the words of Python's
// clickhouse_connect.get_client; the Python tests read the same file.
type corpusEntry struct {
	URI     string         `json:"uri"`
	Params  map[string]any `json:"params"`
	Options map[string]any `json:"options"` // where ours differ from the client's
	Missing string         `json:"missing"` // the error's text, for want of a user or database
	Invalid string         `json:"invalid"` // the error's text otherwise
}

func readCorpus(t testing.TB) []corpusEntry {
	t.Helper()
	return readJSON[[]corpusEntry](t, "testdata/uri_corpus.json")
}

func readJSON[T any](t testing.TB, name string) T {
	t.Helper()
	var v T
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func TestURICorpus(t *testing.T) {
	corpus := readCorpus(t)
	if len(corpus) < 400 {
		t.Fatalf("the corpus has only %d entries", len(corpus))
	}
	for _, e := range corpus {
		t.Run(e.URI, func(t *testing.T) {
			_, bad := parseURI(e.URI)
			if bad != nil {
				if got := bad.reason + " — " + bad.advice; got != e.Invalid {
					t.Errorf("error %q, want %q", got, e.Invalid)
				}
				return
			}
			r, err := FromAddon(e.URI, nil)
			if e.Params == nil {
				checkSettingsError(t, err, e)
				return
			}
			if err != nil {
				t.Fatalf("error %v, want %v", err, e.Params)
			}
			want := e.Params
			if want["verify"] == true { // the default, which options do not spell out
				delete(want, "verify")
			}
			for name, v := range e.Options {
				want[name] = v
			}
			if diff := cmp.Diff(want, clientParams(t, r.Options)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func checkSettingsError(t *testing.T, err error, e corpusEntry) {
	t.Helper()
	var se *chstate.Error
	if !errors.As(err, &se) || !errors.Is(err, chstate.ErrSettings) {
		t.Fatalf("error %v is no settings error", err)
	}
	if got, want := se.Reason+" — "+se.Advice, e.Missing+e.Invalid; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if missing := errors.Is(err, ErrMissing); missing != (e.Missing != "") {
		t.Errorf("errors.Is(err, ErrMissing) is %v", missing)
	}
}

// clientParams puts options into the words of the corpus.
func clientParams(t *testing.T, o chstate.Options) map[string]any {
	host := o.Host
	if host == "" {
		host = "localhost"
	}
	params := map[string]any{
		"host": host, "port": o.Port, "username": o.User, "password": o.Password,
		"database": o.Database, "secure": o.Secure,
	}
	set := func(name, text string) {
		if text != "" {
			params[name] = text
		}
	}
	set("access_token", o.AccessToken)
	set("server_host_name", o.TLS.ServerHostName)
	set("proxy_path", o.ProxyPath)
	if o.Secure {
		set("https_proxy", o.HTTPProxy)
	} else {
		set("http_proxy", o.HTTPProxy)
	}
	if o.TLS.SkipVerify {
		params["verify"] = false
	}
	if o.ConnectTimeout != 0 {
		params["connect_timeout"] = o.ConnectTimeout.Seconds()
	}
	if o.SendReceiveTimeout != 0 {
		params["send_receive_timeout"] = o.SendReceiveTimeout.Seconds()
	}
	if len(o.ServerSettings) > 0 {
		params["settings"] = o.ServerSettings
	}
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// The cases that people reported (N01), as they were written down.
func TestN01ReportedURIs(t *testing.T) {
	text, err := os.ReadFile("testdata/uri_cases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	for _, line := range lines {
		uri, want, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("line %q", line)
		}
		t.Run(uri, func(t *testing.T) {
			r, err := FromAddon(uri, nil)
			if strings.HasPrefix(want, "error") != (err != nil) {
				t.Fatalf("error %v, want %s", err, want)
			}
			if err != nil {
				encode := strings.Contains(want, "percent-encode") || strings.Contains(want, "same")
				if encode && !strings.Contains(err.Error(), "percent-encode") {
					t.Errorf("error %v does not say to percent-encode", err)
				}
				for _, secret := range []string{"p#w", "p/w", "p?w", "p[w"} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("error %v shows the password", err)
					}
				}
				return
			}
			if _, password, ok := strings.Cut(want, "password "); ok && !strings.HasPrefix(want, "works: empty") {
				password, _, _ = strings.Cut(password, " (")
				if r.Options.Password != password {
					t.Errorf("password %q, want %q", r.Options.Password, password)
				}
			}
			switch {
			case strings.HasPrefix(want, "TLS on"):
				if !r.Options.Secure || r.Options.Port != 8443 {
					t.Errorf("secure %v, port %d", r.Options.Secure, r.Options.Port)
				}
			case strings.HasPrefix(want, "native port"):
				if len(r.Notices) != 1 || !strings.Contains(r.Notices[0], "8123") {
					t.Errorf("notices %q", r.Notices)
				}
			case want == "works: IPv6":
				if r.Options.Host != "::1" {
					t.Errorf("host %q", r.Options.Host)
				}
			}
		})
	}
}

// secretText is a password that could not stand anywhere else by chance.
func secretText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		raw := rapid.StringOfN(rapid.SampledFrom([]rune(`ab%41@:/#?[]&=+; "'\ü€😀._-`)), 0, 12, -1).Draw(t, "middle")
		return "Geheim" + raw + "wOrt"
	})
}

// checkNoSecret fails when a piece of the password can be read.
func checkNoSecret(t interface{ Errorf(string, ...any) }, what, text string) {
	for _, piece := range []string{"Geheim", "wOrt", "geheim", "wort"} {
		if strings.Contains(text, piece) {
			t.Errorf("%s shows the password: %q", what, text)
		}
	}
}

func TestURINeverShowsThePassword(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := secretText().Draw(t, "password")
		if rapid.Bool().Draw(t, "encoded") {
			password = escape(password)
		}
		form := rapid.SampledFrom([]string{
			"clickhouse://u:*@h:8123/d", "clickhouse://u:*@[::1]/d?secure=true", "clickhouse://u:*@/", "clickhouse://u:*",
			"clickhouse://*@h/d", "clickhouse://h/d?user=u&password=*", "clickhouse://u:*@h/d?access_token=*",
			"clickhouse://h/d?user=u&access_token=*", "https://u:*@h", "u:*@h/d", "clickhouse://u:*@h:x/d", "clickhouse://u:*@h/d?secur=1",
			"clickhouse://u:*@h/d?port=x", "clickhouse://u:*@h/d?lock_wait_seconds=x&ch_a=b", "clickhouse://u:*@h/a/b",
			"clickhouse://u:p@h/d?http_proxy=http://u:*@proxy:3128",
		}).Draw(t, "form")
		if strings.HasPrefix(form, "clickhouse://*") {
			password = ":" + password // the user is no secret, a password without one is
		}
		if form == "clickhouse://u:*" && strings.Contains(password, "@") {
			t.Skip("this is a URI: user, password and host")
		}
		uri := strings.ReplaceAll(form, "*", password)
		checkNoSecret(t, "RedactURI", RedactURI(uri))
		if _, err := ParseURI(uri); err != nil {
			checkNoSecret(t, "ParseURI", err.Error())
		}
		r, err := FromAddon(uri, nil)
		if err != nil {
			checkNoSecret(t, "FromAddon", err.Error())
			return
		}
		for _, v := range r.Values {
			checkNoSecret(t, v.Name, v.Value)
		}
		checkNoSecret(t, "notices", strings.Join(r.Notices, "\n"))
	})
}

// What is percent-encoded comes back as it was, whatever it is.
func TestURIRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Filter(func(s string) bool { return s != "" && !strings.ContainsFunc(s, isControl) })
		user, password, database := text.Draw(t, "user"), rapid.String().Draw(t, "password"), text.Draw(t, "database")
		uri := "clickhouse://" + escape(user) + ":" + escape(password) + "@h/" + escape(database)
		u, err := ParseURI(uri)
		if err != nil {
			t.Fatalf("%q: %v", uri, err)
		}
		want := URI{Host: "h", User: user, Password: password, Database: database, Params: map[string]string{}, ServerSettings: map[string]string{}}
		if diff := cmp.Diff(want, u); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

func FuzzParseURI(f *testing.F) {
	for _, e := range readCorpus(f) {
		f.Add(e.URI)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURI(s)
		if err != nil {
			if !errors.Is(err, chstate.ErrSettings) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		// What is shown of a URI can be read again and says the same, secrets apart.
		shown := u.String()
		again, err := ParseURI(shown)
		if err != nil {
			t.Fatalf("%q, shown as %q: %v", s, shown, err)
		}
		if again.String() != shown || again.Host != u.Host || again.Port != u.Port || again.User != u.User || again.Database != u.Database {
			t.Fatalf("%q, shown as %q, reads as %+v", s, shown, again)
		}
		if len(u.Password) > 3 && again.Password != masked {
			t.Fatalf("%q is shown as %q", s, shown)
		}
	})
}
