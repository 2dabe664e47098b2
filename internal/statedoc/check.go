package statedoc

import (
	"bytes"
	"unicode/utf8"
)

// Check says why a text cannot be one half of a state: it must be one JSON
// object in UTF-8. Python's NaN and Infinity are let through. The error is a
// *SyntaxError, *EncodingError or *KindError; it begins with what was found,
// so that callers can put "state "a": " before it.
func Check(text []byte) error {
	if err := checkUTF8(text); err != nil {
		return err
	}
	p := newParser(text)
	if p.dec.PeekKind() != '{' {
		_, err := parseObject(text) // not an object: say what it is
		return err
	}
	// No tree is built: states may be large, and each is checked on its way in and out.
	if err := p.dec.SkipValue(); err != nil {
		return syntaxError(text, err)
	}
	return p.end(object)
}

// Empty says whether a half holds nothing: absent, null, or an object without
// keys. Meltano's is_complete() is the opposite of it for the completed half.
func Empty(text []byte) bool {
	t := bytes.TrimSpace(text)
	if len(t) == 0 || string(t) == "null" {
		return true
	}
	return t[0] == '{' && t[len(t)-1] == '}' && len(bytes.TrimSpace(t[1:len(t)-1])) == 0
}

var utf8BOM = []byte("\xef\xbb\xbf")

// Decode takes the content of a file and gives the text in it: without a UTF-8
// byte order mark, and only if it is UTF-8. The error is an *EncodingError.
func Decode(content []byte) ([]byte, error) {
	content = bytes.TrimPrefix(content, utf8BOM)
	if err := checkUTF8(content); err != nil {
		return nil, err
	}
	return content, nil
}

// checkUTF8 names the encoding of what is not UTF-8, as well as it can be told.
func checkUTF8(b []byte) error {
	if name := wideEncoding(b); name != "" {
		return &EncodingError{Encoding: name}
	}
	if utf8.Valid(b) {
		return nil
	}
	i := 0
	for i < len(b) {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	place := placeOf(b, i)
	return &EncodingError{Encoding: codePage(b), Place: &place}
}

// wideEncoding tells UTF-16 and UTF-32 by their byte order mark, or by the
// zero bytes around the first character, which in JSON is always ASCII.
func wideEncoding(b []byte) string {
	for _, e := range []struct{ mark, name string }{
		{"\xff\xfe\x00\x00", "UTF-32 (little endian)"}, // before UTF-16's mark, which begins it
		{"\x00\x00\xfe\xff", "UTF-32 (big endian)"},
		{"\xff\xfe", "UTF-16 (little endian)"},
		{"\xfe\xff", "UTF-16 (big endian)"},
	} {
		if bytes.HasPrefix(b, []byte(e.mark)) {
			return e.name
		}
	}
	if len(b) < 4 {
		return ""
	}
	switch zero := [4]bool{b[0] == 0, b[1] == 0, b[2] == 0, b[3] == 0}; zero {
	case [4]bool{false, true, true, true}:
		return "UTF-32 (little endian)"
	case [4]bool{true, true, true, false}:
		return "UTF-32 (big endian)"
	case [4]bool{false, true, false, true}:
		return "UTF-16 (little endian)"
	case [4]bool{true, false, true, false}:
		return "UTF-16 (big endian)"
	}
	return ""
}

// codePage guesses at a one-byte encoding. ISO 8859 has no letters between
// 0x80 and 0x9F, the Windows code pages do.
func codePage(b []byte) string {
	for _, c := range b {
		if c >= 0x80 && c <= 0x9f {
			return "probably a Windows code page (cp1250, cp1252, …)"
		}
	}
	return "probably ISO 8859 or a Windows code page (cp1250, cp1252, …)"
}
