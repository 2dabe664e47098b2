package config

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/chstate/chstate"
)

// resolution gathers what was found, and makes options of it.
type resolution struct {
	given   map[string]found
	uri     URI
	notices []string
	parsed  map[string]value
	options chstate.Options
}

func (r *resolution) notice(format string, args ...any) {
	r.notices = append(r.notices, fmt.Sprintf(format, args...))
}

func (r *resolution) takeURI(f found, l level) (uriLayer, error) {
	text := strings.Trim(f.text, " \t\r\n")
	if text == "" {
		return uriLayer{}, nil
	}
	if text == "systemdb" {
		return uriLayer{}, settingsError(&badValue{"the URI is systemdb: this project keeps its state in Meltano's own database",
			uriForm + " as state_backend.uri, or give it with --uri"}, f.from, nil)
	}
	u, bad := parseURI(text)
	if bad != nil {
		return uriLayer{}, settingsError(bad, f.from, nil)
	}
	r.uri = u
	f.level = l
	r.given[uriSetting().Name] = f
	if f.file != "" && u.hasSecret() {
		r.warnIfReadable(f.file, "a URI with a password")
	}
	return uriLayer{u, l}, nil
}

func (u URI) hasSecret() bool {
	return u.Password != "" || u.Params["password"] != "" || u.Params["access_token"] != ""
}

// gather takes each setting from the first layer that has it.
func (r *resolution) gather(layers []layer) error {
	for _, s := range table[1:] {
		for _, l := range layers {
			f, ok, err := l.get(s)
			if err != nil {
				return err
			}
			if ok && f.text != "" {
				r.given[s.Name] = f
				if f.file != "" && s.Secret {
					r.warnIfReadable(f.file, "the setting "+s.Key())
				}
				break
			}
		}
	}
	return nil
}

// finish checks every value, settles what depends on others, and fills the options.
func (r *resolution) finish() (*Resolved, error) {
	r.parsed = map[string]value{}
	for _, s := range table[1:] {
		f, ok := r.given[s.Name]
		if !ok {
			continue
		}
		v, bad := s.parse(f.text)
		if bad == nil && s.Name == "host" {
			v.text, bad = cleanHost(f.text)
		}
		if bad == nil && s.Kind == Path {
			bad = checkFile(v.text)
		}
		if bad != nil {
			return nil, s.failure(bad, f.from)
		}
		r.parsed[s.Name] = v
		if s.apply != nil {
			s.apply(&r.options, v)
		}
	}
	r.options.ServerSettings = r.uri.ServerSettings
	if err := r.chooseLogin(); err != nil {
		return nil, err
	}
	derived := r.settlePort()
	err := r.required()
	if err == nil {
		r.hints()
	}
	return &Resolved{r.options, r.values(derived), r.notices}, err
}

// cleanHost takes the brackets off an IPv6 address, and refuses what is more than a host.
func cleanHost(text string) (string, *badValue) {
	host := strings.Trim(text, " \t")
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	if isIPv6(host) || host != "" && isHostName(host) {
		return lowerHost(host), nil
	}
	// Not shown: somebody may have written a whole URI here.
	return "", &badValue{"is not a host name or address",
		"write the name alone; a port belongs into state_backend.clickhouse.port, a whole URI into state_backend.uri"}
}

func checkFile(name string) *badValue {
	f, err := os.Open(name)
	if err != nil {
		return &badValue{fmt.Sprintf("names %s, which cannot be read: %s", quote(name), cause(err)), "correct the path, or the file's permissions"}
	}
	f.Close()
	return nil
}

// settlePort decides on TLS and the port, each of which follows from the
// other where only one is given. It gives the sources of what was derived.
func (r *resolution) settlePort() map[string]string {
	o := &r.options
	derived := map[string]string{}
	if _, ok := r.parsed["secure"]; !ok {
		switch {
		case o.Port == 443 || o.Port == 8443 || o.Port == 9440 && o.Protocol == "native":
			o.Secure, derived["secure"] = true, fmt.Sprintf("port %d", o.Port)
		case strings.HasSuffix(strings.TrimSuffix(o.Host, "."), ".clickhouse.cloud"):
			o.Secure, derived["secure"] = true, "a host under .clickhouse.cloud"
		}
	}
	if o.Port == 0 {
		o.Port = chstate.DefaultPort(o.Protocol, o.Secure)
		derived["port"] = "default"
	}
	return derived
}

// required checks that the login names a user and a database.
func (r *resolution) required() error {
	_, hasURI := r.given[uriSetting().Name]
	o := r.options
	if !hasURI && o.Host == "" && o.User == "" && o.Database == "" {
		return settingsError(&badValue{"no ClickHouse is named: there is no state backend URI",
			"set MELTANO_STATE_BACKEND_URI to clickhouse://user:password@host:8123/database, or state_backend.uri in " + meltanoYML}, "", ErrMissing)
	}
	for _, name := range []string{"user", "database"} {
		if _, ok := r.given[name]; ok || name == "user" && o.AccessToken != "" {
			continue
		}
		s, _ := find(name)
		return settingsError(&badValue{s.Key() + " is required and not set", uriForm + " in the URI, or set " + s.Env()}, "", ErrMissing)
	}
	return nil
}

// hints tells of what will most likely not work.
func (r *resolution) hints() {
	o := r.options
	switch {
	case o.Protocol != "native" && o.Port == 9000:
		r.notice("port 9000 is that of ClickHouse's native protocol: use port 8123 (8443 with TLS), or set protocol to native")
	case o.Protocol != "native" && o.Port == 9440:
		r.notice("port 9440 is that of ClickHouse's native protocol with TLS: use port 8443 with secure=true, or set protocol to native")
	case o.Protocol == "native" && (o.Port == 8123 || o.Port == 8443):
		r.notice("port %d is that of ClickHouse's HTTP interface: with protocol native use port 9000 (9440 with TLS)", o.Port)
	}
	var borrowed, better []string
	for _, s := range table {
		if f, ok := r.given[s.Name]; ok && f.level == levelLastResort {
			borrowed = append(borrowed, f.from)
			better = append(better, s.Env())
		}
	}
	if len(borrowed) > 0 {
		r.notice("taken for want of a setting, and maybe meant for the target: %s; to be sure, set %s",
			strings.Join(borrowed, ", "), strings.Join(better, ", "))
	}
}

func (r *resolution) values(derived map[string]string) []Value {
	var values []Value
	for _, s := range table {
		v := Value{Name: s.Name, Value: s.Default, Source: "default"}
		if f, ok := r.given[s.Name]; ok {
			text := f.text
			if p, ok := r.parsed[s.Name]; ok {
				text = p.text
			}
			v.Value, v.Source = s.shown(text), f.from
		} else if s.Default == "" {
			v.Source = ""
		}
		switch s.Name {
		case "port":
			v.Value = fmt.Sprint(r.options.Port)
		case "secure":
			v.Value = fmt.Sprint(r.options.Secure)
		}
		if from, ok := derived[s.Name]; ok {
			v.Source = from
		}
		values = append(values, v)
	}
	for _, name := range sortedKeys(r.uri.ServerSettings) {
		values = append(values, Value{serverPref + name, r.uri.ServerSettings[name], "the URI's parameter " + serverPref + name})
	}
	return values
}

// warnIfReadable gives a notice when every user may read a file with a secret in it.
func (r *resolution) warnIfReadable(name, what string) {
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o004 == 0 {
		return
	}
	text := fmt.Sprintf("%s holds %s and can be read by every user of this machine: chmod o-rwx %s", name, what, name)
	if !slices.Contains(r.notices, text) {
		r.notices = append(r.notices, text)
	}
}
