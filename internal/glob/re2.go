package glob

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// RE2 gives a regular expression in RE2's syntax, as ClickHouse's match()
// takes it, that matches the same valid UTF-8 texts as the pattern, newlines
// included. Of texts that are not valid UTF-8 RE2 has another idea (no . fits
// an invalid byte), so these must be matched by Match.
func (p Pattern) RE2() string {
	if !p.given {
		return ""
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for _, part := range p.parts {
		switch part.kind {
		case star:
			b.WriteString(`.*`)
		case anyOne:
			b.WriteByte('.')
		case nobody:
			b.WriteString(`[^\x{0}-\x{10FFFF}]`)
		case one:
			part.char.re2(&b)
		case set:
			part.class(&b)
		}
	}
	b.WriteString(`\z`)
	return b.String()
}

func (p part) class(b *strings.Builder) {
	var in strings.Builder
	for _, r := range p.ranges {
		// Invalid bytes are in no valid text, and RE2 has no escape for them.
		from, to := r.from, min(r.to, utf8.MaxRune)
		if from > to {
			continue
		}
		fmt.Fprintf(&in, `\x{%X}-\x{%X}`, from, to)
	}
	switch {
	case in.Len() > 0 && p.not:
		b.WriteString("[^" + in.String() + "]")
	case in.Len() > 0:
		b.WriteString("[" + in.String() + "]")
	case p.not:
		b.WriteByte('.')
	default:
		b.WriteString(`[^\x{0}-\x{10FFFF}]`)
	}
}

// re2 writes one character so that it means itself.
func (c char) re2(b *strings.Builder) {
	switch {
	case c >= invalid:
		b.WriteString(`[^\x{0}-\x{10FFFF}]`) // in no valid text
	case c == '_' || c == ' ' || c == ':' || c == '/' || c == '-' || c > utf8.RuneSelf,
		'0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		b.WriteRune(rune(c))
	default:
		fmt.Fprintf(b, `\x{%X}`, c)
	}
}
