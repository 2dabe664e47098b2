package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// RedactURI gives a URI for people to read: its password, its secret
// parameters and a proxy's login are ***. Of what cannot be parsed nothing but the scheme is left.
func RedactURI(s string) string {
	u, bad := parseURI(s)
	if bad == nil {
		return u.String()
	}
	given, _, ok := strings.Cut(strings.Trim(s, " \t\r\n"), "://")
	if given = lowerASCII(given); ok && schemeText.MatchString(given) {
		return given + "://***"
	}
	return "***"
}

// String gives the URI with *** for what is secret.
func (u URI) String() string {
	var b strings.Builder
	b.WriteString(scheme + "://")
	if u.User != "" || u.Password != "" {
		b.WriteString(escape(u.User))
		if u.Password != "" {
			b.WriteString(":***")
		}
		b.WriteByte('@')
	}
	if strings.Contains(u.Host, ":") {
		b.WriteString("[" + strings.ReplaceAll(u.Host, "%", "%25") + "]")
	} else {
		b.WriteString(u.Host)
	}
	if u.Port != 0 {
		b.WriteString(":" + strconv.Itoa(u.Port))
	}
	if u.Database != "" || len(u.Params)+len(u.ServerSettings) > 0 {
		b.WriteString("/" + escape(u.Database))
	}
	sep := "?"
	write := func(name, text string) {
		b.WriteString(sep + name + "=" + text)
		sep = "&"
	}
	for _, s := range table {
		if text, ok := u.Params[s.Name]; ok {
			write(s.Name, escapeUnlessMasked(s.shown(text)))
		}
	}
	for _, name := range sortedKeys(u.ServerSettings) {
		write(serverPref+name, escape(u.ServerSettings[name]))
	}
	return b.String()
}

const masked = "***"

// shown is a value as it may be printed.
func (s Setting) shown(text string) string {
	switch {
	case text == "":
		return ""
	case s.Secret:
		return masked
	case s.Name == "uri":
		return RedactURI(text)
	case s.Name == "http_proxy":
		return maskLogin(text)
	default:
		return text
	}
}

// maskLogin hides what stands before the last @ of a proxy's URL.
func maskLogin(text string) string {
	at := strings.LastIndex(text, "@")
	if at < 0 {
		return text
	}
	before, _, ok := strings.Cut(text[:at], "://")
	if !ok {
		return masked + text[at:]
	}
	return before + "://" + masked + text[at:]
}

func escapeUnlessMasked(text string) string {
	if text == masked {
		return text
	}
	return escape(text)
}

func escape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
