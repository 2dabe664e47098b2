package config

import (
	"regexp"
	"strings"
	"unicode"
)

// parseDotenv reads a .env file as python-dotenv does, on which Meltano relies:
// export, comments, quotes and their escapes, values over several lines, and
// ${NAME} or ${NAME:-default} in every value, single quotes included. A name
// without = has no value, and a line that makes no sense is passed over.
// Earlier lines beat environ in ${NAME}.
func parseDotenv(text string, environ map[string]string) map[string]string {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	lookup := map[string]string{} // what ${NAME} sees; a name without a value hides the environment's
	values := map[string]string{}
	for r := (&dotenvReader{text}); r.rest != ""; {
		name, value, hasValue, ok := r.binding()
		if !ok || name == "" {
			continue
		}
		delete(values, name)
		if hasValue {
			value = interpolate(value, lookup, environ)
			values[name] = value
		}
		lookup[name] = value
	}
	return values
}

type dotenvReader struct{ rest string }

// binding takes one statement. ok is false for a line that makes no sense.
func (r *dotenvReader) binding() (name, value string, hasValue, ok bool) {
	r.rest = strings.TrimLeftFunc(r.rest, isPythonSpace)
	if r.rest == "" {
		return "", "", false, true
	}
	if after, found := strings.CutPrefix(r.rest, "export"); found {
		if trimmed := strings.TrimLeftFunc(after, isBlank); trimmed != after {
			r.rest = trimmed
		}
	}
	if name, ok = r.name(); ok {
		r.skipBlanks()
		ok = true
		if after, found := strings.CutPrefix(r.rest, "="); found {
			r.rest = after
			r.skipBlanks()
			hasValue = true
			// After a blank, # begins a comment; right after = it is the value's.
			comment := len(r.rest) < len(after) && strings.HasPrefix(r.rest, "#")
			if !comment {
				value, ok = r.value()
			}
		}
	}
	if ok {
		r.skipComment()
		r.skipBlanks()
		if r.rest == "" || r.rest[0] == '\n' {
			r.rest = strings.TrimPrefix(r.rest, "\n")
			return name, value, hasValue, true
		}
	}
	_, r.rest, _ = strings.Cut(r.rest, "\n")
	return "", "", false, false
}

var (
	plainName    = regexp.MustCompile(`^[^=#\s\v\x{1c}-\x{1f}\x{85}\p{Z}]+`)
	quotedName   = regexp.MustCompile(`^'([^']+)'`)
	singleQuoted = regexp.MustCompile(`^'((?:\\(?s:.)|[^'\\])*)'`)
	doubleQuoted = regexp.MustCompile(`^"((?:\\(?s:.)|[^"\\])*)"`)
	lineComment  = regexp.MustCompile(`[\s\v\x{1c}-\x{1f}\x{85}\p{Z}]+#.*`)
)

func (r *dotenvReader) name() (string, bool) {
	if strings.HasPrefix(r.rest, "#") {
		return "", true
	}
	if strings.HasPrefix(r.rest, "'") {
		return r.take(quotedName)
	}
	m := plainName.FindString(r.rest)
	r.rest = r.rest[len(m):]
	return m, m != ""
}

func (r *dotenvReader) value() (string, bool) {
	switch {
	case strings.HasPrefix(r.rest, "'"):
		text, ok := r.take(singleQuoted)
		return unescape(text, `\'`), ok
	case strings.HasPrefix(r.rest, `"`):
		text, ok := r.take(doubleQuoted)
		return unescape(text, `\'"abfnrtv`), ok
	default:
		line, _, _ := strings.Cut(r.rest, "\n")
		r.rest = r.rest[len(line):]
		return strings.TrimRightFunc(lineComment.ReplaceAllString(line, ""), isPythonSpace), true
	}
}

// take cuts off what the expression matches, and gives its first group.
func (r *dotenvReader) take(e *regexp.Regexp) (string, bool) {
	m := e.FindStringSubmatch(r.rest)
	if m == nil {
		return "", false
	}
	r.rest = r.rest[len(m[0]):]
	return m[1], true
}

func (r *dotenvReader) skipBlanks() { r.rest = strings.TrimLeftFunc(r.rest, isBlank) }

func (r *dotenvReader) skipComment() {
	if trimmed := strings.TrimLeftFunc(r.rest, isBlank); strings.HasPrefix(trimmed, "#") {
		line, _, _ := strings.Cut(trimmed, "\n")
		r.rest = trimmed[len(line):]
	}
}

// isPythonSpace is what Python takes for white space: Go's, and the four separators of ASCII.
func isPythonSpace(c rune) bool { return unicode.IsSpace(c) || 0x1c <= c && c <= 0x1f }

// isBlank is white space within a line.
func isBlank(c rune) bool { return c != '\n' && c != '\r' && isPythonSpace(c) }

// unescape undoes a backslash before one of the characters, as Python reads it.
func unescape(text, chars string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) || !strings.Contains(chars, text[i+1:i+2]) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case '\\', '\'', '"':
			b.WriteByte(c)
		default:
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		}
	}
	return b.String()
}

var dotenvVariable = regexp.MustCompile(`\$\{([^}:]*)(?::-([^}]*))?\}`)

func interpolate(text string, earlier, environ map[string]string) string {
	var b strings.Builder
	last := 0
	for _, m := range dotenvVariable.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[last:m[0]])
		last = m[1]
		name := text[m[2]:m[3]]
		if v, ok := earlier[name]; ok {
			b.WriteString(v)
		} else if v, ok := environ[name]; ok {
			b.WriteString(v)
		} else if m[4] >= 0 {
			b.WriteString(text[m[4]:m[5]])
		}
	}
	b.WriteString(text[last:])
	return b.String()
}
