// Package sqltext reads as much of ClickHouse's SQL as the HTTP interface must
// know before the engine parses a statement: where the data of an INSERT begins,
// which format a result takes, whether there is a second statement.
package sqltext

import (
	"bytes"
	"strings"
)

type tokenKind int

const (
	tokenEnd    tokenKind = iota
	tokenWord             // a keyword or a bare identifier
	tokenQuoted           // `name` or "name"
	tokenString           // 'text' or a heredoc
	tokenNumber
	tokenOther // one byte of punctuation
)

// token is a piece of the text, from start to end.
type token struct {
	kind       tokenKind
	start, end int
}

// lexer walks over a text token by token, leaving out spaces and comments.
type lexer struct {
	text []byte
	pos  int
}

func (l *lexer) next() token {
	l.skipSpace()
	start := l.pos
	if start >= len(l.text) {
		return token{tokenEnd, start, start}
	}
	c := l.text[start]
	switch c {
	case '\'':
		l.pos = quotedEnd(l.text, start, c)
		return token{tokenString, start, l.pos}
	case '`', '"':
		l.pos = quotedEnd(l.text, start, c)
		return token{tokenQuoted, start, l.pos}
	case '$':
		if end, ok := heredocEnd(l.text, start); ok {
			l.pos = end
			return token{tokenString, start, end}
		}
	}
	switch {
	case c >= '0' && c <= '9':
		l.pos = wordEnd(l.text, start)
		return token{tokenNumber, start, l.pos}
	case isWordByte(c):
		l.pos = wordEnd(l.text, start)
		return token{tokenWord, start, l.pos}
	}
	l.pos++
	return token{tokenOther, start, l.pos}
}

// is tells whether t is the keyword or the punctuation s (upper case).
func (l *lexer) is(t token, s string) bool {
	return (t.kind == tokenWord || t.kind == tokenOther) && strings.EqualFold(string(l.text[t.start:t.end]), s)
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch c := rest[0]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			l.pos++
		case bytes.HasPrefix(rest, []byte("--")), bytes.HasPrefix(rest, []byte("#!")), bytes.HasPrefix(rest, []byte("# ")):
			if i := bytes.IndexByte(rest, '\n'); i >= 0 {
				l.pos += i + 1
			} else {
				l.pos = len(l.text)
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			l.pos += commentLength(rest)
		default:
			return
		}
	}
}

// commentLength is the length of the comment that rest begins with; comments nest.
func commentLength(rest []byte) int {
	depth := 0
	for i := 0; i+1 < len(rest); i++ {
		switch {
		case rest[i] == '/' && rest[i+1] == '*':
			depth++
			i++
		case rest[i] == '*' && rest[i+1] == '/':
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(rest)
}

// quotedEnd is where the quoted text that begins at start ends. A quote inside
// is doubled or follows a backslash.
func quotedEnd(text []byte, start int, quote byte) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			if i+1 >= len(text) || text[i+1] != quote {
				return i + 1
			}
			i++
		}
	}
	return len(text)
}

// heredocEnd finds the end of $tag$ … $tag$.
func heredocEnd(text []byte, start int) (int, bool) {
	i := start + 1
	for i < len(text) && isWordByte(text[i]) && text[i] != '$' {
		i++
	}
	if i >= len(text) || text[i] != '$' {
		return 0, false
	}
	tag := text[start : i+1]
	j := bytes.Index(text[i+1:], tag)
	if j < 0 {
		return 0, false
	}
	return i + 1 + j + len(tag), true
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func wordEnd(text []byte, pos int) int {
	for pos < len(text) && isWordByte(text[pos]) {
		pos++
	}
	return pos
}
