package sqltext

import "strings"

// Statement is what Analyze finds out about one statement.
type Statement struct {
	// Verb is its first keyword in upper case, or the one that says what a
	// statement beginning with WITH or a parenthesis does.
	Verb string
	// Format is the name that a FORMAT clause gives; "" where there is none.
	Format string
	// FormatStart and FormatEnd enclose the FORMAT clause; both 0 where there is
	// none.
	FormatStart, FormatEnd int
	// Insert tells of an INSERT that brings data; nil for every other statement,
	// an INSERT … SELECT among them.
	Insert *Insert
	// End is where the statement's text ends: at its semicolon or the text's end.
	End int
	// Second is where another statement begins after a semicolon; -1 for none.
	Second int
	// InFile and OutFile tell of FROM INFILE and INTO OUTFILE, which only a
	// client program may carry out.
	InFile, OutFile bool
	// Settings are the names and literals of a SET statement.
	Settings map[string]string
	// Database is the name in a USE statement, quoted as it was written.
	Database string
}

// Selects tells whether the statement is a SELECT.
func (s Statement) Selects() bool { return s.Verb == "SELECT" || s.Verb == "FROM" }

// ReadOnly tells whether a server that allows only reading (readonly=2) would run
// the statement.
func (s Statement) ReadOnly() bool {
	switch s.Verb {
	case "SELECT", "FROM", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS", "CHECK", "SET", "USE", "":
		return true
	}
	return false
}

// Analyze reads the statement at the start of text. What it cannot read it
// leaves to the engine, whose parser has the last word.
func Analyze(text []byte) Statement {
	s := Statement{Second: -1, End: len(text)}
	l := &lexer{text: text}
	t := l.next()
	for l.is(t, "(") {
		t = l.next()
	}
	if t.kind != tokenWord {
		return s
	}
	s.Verb = strings.ToUpper(string(text[t.start:t.end]))
	switch s.Verb {
	case "WITH":
		s.readWith(l)
	case "INSERT":
		s.readInsert(l)
	case "SET":
		s.readSet(l)
	case "USE":
		name := l.next()
		s.Database = string(text[name.start:name.end])
		s.readTail(l)
	default:
		s.readTail(l)
	}
	return s
}

// readWith finds what a WITH clause belongs to: the first SELECT or INSERT
// outside of parentheses.
func (s *Statement) readWith(l *lexer) {
	depth := 0
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		switch {
		case l.is(t, "("), l.is(t, "["):
			depth++
		case l.is(t, ")"), l.is(t, "]"):
			depth--
		case depth == 0 && l.is(t, "INSERT"):
			s.Verb = "INSERT"
			s.readInsert(l)
			return
		case depth == 0 && l.is(t, "SELECT"):
			s.Verb = "SELECT"
			s.readTail(l)
			return
		}
	}
	s.Verb = "SELECT"
}

// readTail looks for a FORMAT clause, INTO OUTFILE and a second statement.
func (s *Statement) readTail(l *lexer) {
	depth := 0
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		switch {
		case l.is(t, "("), l.is(t, "["), l.is(t, "{"):
			depth++
		case l.is(t, ")"), l.is(t, "]"), l.is(t, "}"):
			depth--
		case l.is(t, ";"):
			s.end(l, t)
			return
		case depth == 0 && l.is(t, "FORMAT"):
			back := l.pos
			name := l.next()
			after := l.next()
			// A column may be called format too: the clause is a name and then the
			// statement's end, or SETTINGS, or INTO OUTFILE's own FORMAT.
			if name.kind == tokenWord && (after.kind == tokenEnd || l.is(after, ";") || l.is(after, "SETTINGS")) {
				s.Format = string(l.text[name.start:name.end])
				s.FormatStart, s.FormatEnd = t.start, name.end
				l.pos = name.end
				continue
			}
			l.pos = back
		case depth == 0 && l.is(t, "INTO"):
			if back := l.pos; l.is(l.next(), "OUTFILE") {
				s.OutFile = true
			} else {
				l.pos = back
			}
		}
	}
}

// end notes the semicolon that ends the statement and what follows it.
func (s *Statement) end(l *lexer, semicolon token) {
	s.End = semicolon.start
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		if !l.is(t, ";") {
			s.Second = t.start
			return
		}
	}
}

// readSet collects the assignments of SET a = 1, b = 'x'.
func (s *Statement) readSet(l *lexer) {
	s.Settings = map[string]string{}
	for {
		name := l.next()
		if name.kind != tokenWord {
			return
		}
		if !l.is(l.next(), "=") {
			return
		}
		value := l.next()
		end, depth := value.end, 0
		after := value
		for ; after.kind != tokenEnd && (depth > 0 || !l.is(after, ",") && !l.is(after, ";")); after = l.next() {
			switch {
			case l.is(after, "("), l.is(after, "["), l.is(after, "{"):
				depth++
			case l.is(after, ")"), l.is(after, "]"), l.is(after, "}"):
				depth--
			}
			end = after.end
		}
		s.Settings[string(l.text[name.start:name.end])] = string(l.text[value.start:end])
		if l.is(after, ";") {
			s.end(l, after)
		}
		if !l.is(after, ",") {
			return
		}
	}
}
