package statedoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// parse reads one JSON value, and allows nothing but white space after it.
// The nodes share src's memory.
func parse(src []byte) (*node, error) {
	if err := checkUTF8(src); err != nil {
		return nil, err
	}
	p := newParser(src)
	n, err := p.value()
	if err != nil {
		return nil, syntaxError(src, err)
	}
	if err := p.end(n.kind); err != nil {
		return nil, err
	}
	return n, nil
}

// end fails when something other than white space comes after the value that was read.
func (p *parser) end(of kind) error {
	rest := bytes.TrimLeft(p.src[p.dec.InputOffset():], " \t\r\n")
	if len(rest) == 0 {
		return nil
	}
	return &SyntaxError{Place: placeOf(p.src, len(p.src)-len(rest)), Reason: "there is more text after the end of " + string(of)}
}

// parseObject reads a state, which is one JSON object.
func parseObject(src []byte) (*node, error) {
	n, err := parse(src)
	if err != nil {
		return nil, err
	}
	if n.kind != object {
		return nil, &KindError{Found: string(n.kind), Encoded: n.kind == text && holdsObject(n.literal)}
	}
	return n, nil
}

// holdsObject says whether a JSON string's text is itself a JSON object: a
// state that somebody encoded twice.
func holdsObject(literal []byte) bool {
	inner, err := jsontext.AppendUnquote(nil, literal)
	if err != nil {
		return false
	}
	n, err := parse(inner)
	return err == nil && n.kind == object
}

// parser walks the masked text and cuts its pieces out of the source, which
// has the same length.
type parser struct {
	src []byte
	dec *jsontext.Decoder
}

// newParser gives a parser of text that was found to be UTF-8.
func newParser(src []byte) *parser {
	return &parser{src: src, dec: jsontext.NewDecoder(bytes.NewBuffer(maskPython(src)),
		jsontext.AllowDuplicateNames(true),
		// Bytes were checked before; this lets through the escapes of lone
		// surrogates, which Python reads and writes.
		jsontext.AllowInvalidUTF8(true))}
}

// literal reads the next value or name and gives it as the source has it.
func (p *parser) literal() ([]byte, error) {
	v, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(p.dec.InputOffset())
	return p.src[end-len(v) : end], nil
}

func (p *parser) value() (*node, error) {
	switch p.dec.PeekKind() {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return p.scalar(text)
	case '0':
		return p.scalar(number)
	case 't', 'f':
		return p.scalar(boolean)
	default: // null, or what is no value: reading it gives the error
		return p.scalar(null)
	}
}

func (p *parser) scalar(k kind) (*node, error) {
	literal, err := p.literal()
	if err != nil {
		return nil, err
	}
	return &node{kind: k, literal: literal}, nil
}

func (p *parser) object() (*node, error) {
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, err
	}
	n := &node{kind: object}
	for p.dec.PeekKind() != '}' {
		written, err := p.literal()
		if err != nil {
			return nil, err
		}
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		n.put(member{written: written, name: unquote(written), value: value})
	}
	_, err := p.dec.ReadToken()
	return n, err
}

func (p *parser) array() (*node, error) {
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, err
	}
	n := &node{kind: array}
	for p.dec.PeekKind() != ']' {
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		n.elems = append(n.elems, value)
	}
	_, err := p.dec.ReadToken()
	return n, err
}

// unquote gives the text that a name stands for. Lone surrogates have no UTF-8
// form; names with them stand for themselves, marked by a byte that no text has.
func unquote(written []byte) string {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written[1 : len(written)-1])
	}
	name, err := jsontext.AppendUnquote(nil, written)
	if err != nil {
		return "\xff" + string(written)
	}
	return string(name)
}

// pythonLiterals are what Python's json module reads and writes beyond JSON,
// each beside a JSON number of the same length.
var pythonLiterals = []struct{ python, mask []byte }{
	{[]byte("NaN"), []byte("0.0")},
	{[]byte("Infinity"), []byte("0.000000")},
	{[]byte("-Infinity"), []byte("-0.000000")},
}

// maskPython puts numbers in the place of Python's literals, so that a JSON
// decoder takes them and every offset stays. It copies only when there are any.
func maskPython(src []byte) []byte {
	if !bytes.Contains(src, pythonLiterals[0].python) && !bytes.Contains(src, pythonLiterals[1].python) {
		return src
	}
	masked := src
	inString := false
	for i := 0; i < len(src); i++ {
		switch {
		case inString && src[i] == '\\':
			i++
		case src[i] == '"':
			inString = !inString
		case !inString:
			for _, lit := range pythonLiterals {
				if bytes.HasPrefix(src[i:], lit.python) && standsAlone(src, i, i+len(lit.python)) {
					if &masked[0] == &src[0] {
						masked = bytes.Clone(src)
					}
					copy(masked[i:], lit.mask)
					i += len(lit.python) - 1
					break
				}
			}
		}
	}
	return masked
}

// standsAlone says whether src[from:to] has a delimiter on both sides: "1NaN" is no number.
func standsAlone(src []byte, from, to int) bool {
	delimiter := func(i int) bool {
		return i < 0 || i >= len(src) || bytes.IndexByte([]byte(" \t\r\n:,[]{}"), src[i]) >= 0
	}
	return delimiter(from-1) && delimiter(to)
}

// syntaxError says where and why the decoder stopped.
func syntaxError(src []byte, err error) error {
	if len(bytes.TrimSpace(src)) == 0 {
		return &SyntaxError{Place: placeOf(src, len(src)), Reason: "there is no text"}
	}
	offset, reason := len(src), "the text ends in the middle of a JSON value"
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		offset, reason = int(syn.ByteOffset), fmt.Sprint(syn.Err)
	}
	return &SyntaxError{Place: placeOf(src, offset), Reason: reason}
}
