package sqltext

import (
	"bytes"
	"fmt"
)

// Insert is where the parts of an INSERT with data lie in its text.
type Insert struct {
	// Format is the format of the data.
	Format string
	// Data is where the data begins, after FORMAT x or VALUES.
	Data int

	head     int // where FORMAT x or VALUES begins
	settings int // where a SETTINGS clause before it begins; head without one
	// input and inputEnd enclose input('…'), which stands for the data in an
	// INSERT … SELECT; both 0 without.
	input, inputEnd int
}

// FromFile returns the statement with the data taken from the file at path, which
// is given as a string literal. The text up to Data is needed.
func (i *Insert) FromFile(text []byte, path string) []byte {
	if i.inputEnd > 0 {
		// file() takes the structure that input() has, after path and format.
		structure := bytes.TrimPrefix(bytes.TrimSpace(text[i.input+len("input"):i.inputEnd]), []byte("("))
		return fmt.Appendf(nil, "%sfile(%s, %s, %s%s", text[:i.input], path, i.Format, structure, text[i.inputEnd:i.head])
	}
	return fmt.Appendf(nil, "%s FROM INFILE %s COMPRESSION 'none' %s FORMAT %s", text[:i.settings], path, text[i.settings:i.head], i.Format)
}

// readInsert finds where the data of INSERT INTO … begins.
func (s *Statement) readInsert(l *lexer) {
	t := skipTarget(l)
	i := &Insert{}
	depth, selects := 0, false
	for ; t.kind != tokenEnd; t = l.next() {
		switch {
		case l.is(t, "("), l.is(t, "["), l.is(t, "{"):
			depth++
		case l.is(t, ")"), l.is(t, "]"), l.is(t, "}"):
			depth--
		case selects && l.is(t, "INPUT"):
			if open := l.next(); l.is(open, "(") {
				i.input, i.inputEnd = t.start, closing(l)
			}
		case l.is(t, "SELECT"):
			selects = true
		case depth != 0:
		case l.is(t, "WATCH"):
			selects = true
		case l.is(t, ";"):
			s.end(l, t)
			return
		case !selects && l.is(t, "FROM"):
			if l.is(l.next(), "INFILE") {
				s.InFile = true
				return
			}
		case !selects && l.is(t, "SETTINGS"):
			i.settings = t.start
		case !selects && l.is(t, "VALUES"):
			i.Format, i.head, i.Data = "Values", t.start, t.end
			s.Insert = i.complete()
			return
		case (!selects || i.inputEnd > 0) && l.is(t, "FORMAT"):
			name := l.next()
			if name.kind != tokenWord {
				continue
			}
			i.Format, i.head, i.Data = string(l.text[name.start:name.end]), t.start, dataStart(l.text, name.end)
			s.Insert = i.complete()
			return
		}
	}
}

func (i *Insert) complete() *Insert {
	if i.settings == 0 {
		i.settings = i.head
	}
	return i
}

// skipTarget skips INTO, TABLE, FUNCTION and the table's name, which may be a
// keyword, and returns the token after them.
func skipTarget(l *lexer) token {
	t := l.next()
	for _, keyword := range []string{"INTO", "TABLE", "FUNCTION"} {
		if l.is(t, keyword) {
			t = l.next()
		}
	}
	for t.kind == tokenWord || t.kind == tokenQuoted {
		if t = l.next(); !l.is(t, ".") {
			return t
		}
		t = l.next()
	}
	return t
}

// closing returns the end of the parenthesis that closes the one just read.
func closing(l *lexer) int {
	for depth := 1; depth > 0; {
		switch t := l.next(); {
		case t.kind == tokenEnd:
			return t.end
		case l.is(t, "("):
			depth++
		case l.is(t, ")"):
			depth--
		}
	}
	return l.pos
}

// dataStart is where data begins after a format's name: after the spaces on that
// line and its line end, as the engine's parser has it.
func dataStart(text []byte, pos int) int {
	for pos < len(text) && (text[pos] == ' ' || text[pos] == '\t' || text[pos] == '\f') {
		pos++
	}
	if pos < len(text) && text[pos] == '\r' {
		pos++
	}
	if pos < len(text) && text[pos] == '\n' {
		pos++
	}
	return pos
}
