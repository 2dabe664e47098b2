// Package glob matches state ids against patterns as Python's
// fnmatch.fnmatchcase does: * is any text, ? is one character, [abc] one of
// these, [!abc] one that is none of these, [a-z] a range; everything else, _ %
// and \ included, is itself. A pattern must match the whole id.
//
// A character is a code point; a byte that is no valid UTF-8 counts as one
// character.
package glob

import (
	"strings"
	"unicode/utf8"
)

// Pattern is a pattern that was read once. The zero value matches everything,
// as an empty pattern does.
type Pattern struct {
	parts []part
	given bool
}

// part is one element of a pattern.
type part struct {
	kind   kind
	char   char // for one
	ranges []span
	not    bool
}

type kind int

const (
	one    kind = iota // one given character
	anyOne             // any character
	star               // any text
	set                // one character in (or, with not, outside) ranges
	nobody             // a set that is empty: matches nothing
)

// char is a code point, or an invalid byte b as invalid+b, so that such a byte
// equals only itself.
type char int32

const invalid char = utf8.MaxRune + 1

type span struct{ from, to char }

// decode gives the first character of s and its length.
func decode(s string) (char, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return invalid + char(s[0]), 1
	}
	return char(r), n
}

func chars(s string) []char {
	out := make([]char, 0, len(s))
	for len(s) > 0 {
		c, n := decode(s)
		out, s = append(out, c), s[n:]
	}
	return out
}

// Match says whether the whole of s matches the pattern.
func Match(pattern, s string) bool { return Compile(pattern).Match(s) }

// Compile reads a pattern. Every text is a pattern: what cannot be a set is
// itself. The empty one matches everything.
func Compile(pattern string) Pattern {
	p := Pattern{given: pattern != ""}
	in := chars(pattern)
	for i := 0; i < len(in); {
		c := in[i]
		i++
		switch c {
		case '*':
			if n := len(p.parts); n == 0 || p.parts[n-1].kind != star {
				p.parts = append(p.parts, part{kind: star})
			}
		case '?':
			p.parts = append(p.parts, part{kind: anyOne})
		case '[':
			end := closing(in, i)
			if end < 0 {
				p.parts = append(p.parts, part{kind: one, char: c})
				continue
			}
			p.parts = append(p.parts, readSet(in[i:end]))
			i = end + 1
		default:
			p.parts = append(p.parts, part{kind: one, char: c})
		}
	}
	return p
}

// closing finds the ] of the set that begins at i, after its [; a ] at the
// very beginning belongs to the set.
func closing(in []char, i int) int {
	if i < len(in) && in[i] == '!' {
		i++
	}
	if i < len(in) && in[i] == ']' {
		i++
	}
	for ; i < len(in); i++ {
		if in[i] == ']' {
			return i
		}
	}
	return -1
}

// readSet reads what stands between [ and ], just as fnmatch does: cut at the
// hyphens that may make a range, then join pieces whose range is empty.
func readSet(in []char) part {
	not := in[0] == '!'
	first := 1
	if not {
		first = 2
	}
	var pieces [][]char
	start := 0
	for k := first; ; {
		k = index(in, '-', k)
		if k < 0 {
			break
		}
		pieces = append(pieces, in[start:k])
		start = k + 1
		k += 3
	}
	if rest := in[start:]; len(rest) > 0 {
		pieces = append(pieces, rest)
	} else {
		last := len(pieces) - 1
		pieces[last] = append(append([]char(nil), pieces[last]...), '-')
	}
	for k := len(pieces) - 1; k > 0; k-- {
		before, after := pieces[k-1], pieces[k]
		if before[len(before)-1] > after[0] {
			joined := append(append([]char(nil), before[:len(before)-1]...), after[1:]...)
			pieces = append(append(pieces[:k-1:k-1], joined), pieces[k+1:]...)
		}
	}
	if not {
		pieces[0] = pieces[0][1:]
	}
	p := part{kind: set, not: not}
	for k, piece := range pieces {
		for i, c := range piece {
			// The last of a piece and the first of the next are a range.
			if k > 0 && i == 0 {
				prev := pieces[k-1]
				p.ranges = append(p.ranges, span{prev[len(prev)-1], c})
				continue
			}
			p.ranges = append(p.ranges, span{c, c})
		}
	}
	if len(p.ranges) == 0 {
		if not {
			return part{kind: anyOne}
		}
		return part{kind: nobody}
	}
	return p
}

func index(in []char, c char, from int) int {
	for i := from; i < len(in); i++ {
		if in[i] == c {
			return i
		}
	}
	return -1
}

func (p part) matches(c char) bool {
	switch p.kind {
	case one:
		return c == p.char
	case anyOne:
		return true
	case set:
		for _, r := range p.ranges {
			if r.from <= c && c <= r.to {
				return !p.not
			}
		}
		return p.not
	default:
		return false
	}
}

// Match says whether the whole of s matches the pattern.
func (p Pattern) Match(s string) bool {
	if !p.given {
		return true
	}
	at, rest := 0, s
	// Where to go on when the text after the last star does not fit: the star
	// then takes one character more.
	resume, resumeRest := -1, ""
	for rest != "" || at < len(p.parts) {
		if at < len(p.parts) && p.parts[at].kind == star {
			resume, resumeRest = at, rest
			at++
			continue
		}
		if at < len(p.parts) && rest != "" {
			if c, n := decode(rest); p.parts[at].matches(c) {
				at, rest = at+1, rest[n:]
				continue
			}
		}
		if resume < 0 || resumeRest == "" {
			return false
		}
		_, n := decode(resumeRest)
		resumeRest = resumeRest[n:]
		at, rest = resume+1, resumeRest
	}
	return true
}

// Any says whether the pattern matches every id.
func (p Pattern) Any() bool {
	return !p.given || (len(p.parts) == 1 && p.parts[0].kind == star)
}

// Literal gives the one text that the pattern matches, when there is but one.
func (p Pattern) Literal() (string, bool) {
	prefix, n := p.literal()
	return prefix, p.given && n == len(p.parts)
}

// Prefix gives the text that all matches begin with. all says that every text
// that begins so is a match: the pattern is the prefix and one star.
func (p Pattern) Prefix() (prefix string, all bool) {
	prefix, n := p.literal()
	return prefix, n == len(p.parts)-1 && p.parts[n].kind == star
}

func (p Pattern) literal() (string, int) {
	var b strings.Builder
	for i, part := range p.parts {
		if part.kind != one {
			return b.String(), i
		}
		part.char.write(&b)
	}
	return b.String(), len(p.parts)
}

func (c char) write(b *strings.Builder) {
	if c >= invalid {
		b.WriteByte(byte(c - invalid))
		return
	}
	b.WriteRune(rune(c))
}
