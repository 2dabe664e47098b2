package statedoc

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Place is a place in a text, as editors count: lines and characters from 1.
type Place struct {
	Line, Column int
}

func (p Place) String() string { return fmt.Sprintf("line %d, column %d", p.Line, p.Column) }

// placeOf gives the place of a byte offset.
func placeOf(src []byte, offset int) Place {
	before := src[:min(offset, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Place{
		Line:   bytes.Count(before, []byte{'\n'}) + 1,
		Column: utf8.RuneCount(before[start:]) + 1,
	}
}

// SyntaxError says that a text is not JSON, where and why.
type SyntaxError struct {
	Place  Place
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("invalid JSON at %s: %s", e.Place, e.Reason) }

// KindError says that a text is JSON but not an object, which a state must be.
type KindError struct {
	Found   string // "a JSON string"
	Encoded bool   // the string holds an object: the state was encoded twice
}

func (e *KindError) Error() string {
	msg := e.Found + ", not an object"
	if e.Encoded {
		msg += " (the state was encoded as JSON twice)"
	}
	return msg
}

// EncodingError says that a text is not UTF-8, and what it seems to be.
type EncodingError struct {
	Encoding string // "UTF-16 (little endian)"
	Place    *Place // of the first byte that is not UTF-8, where there is one
}

func (e *EncodingError) Error() string {
	msg := "the text is not UTF-8 but " + e.Encoding
	if e.Place != nil {
		msg += ", at " + e.Place.String()
	}
	return msg
}

// ClashError says that two states cannot be merged: one has an object with
// keys where the other has something that cannot take them. Meltano fails
// there too (TypeError or AttributeError).
type ClashError struct {
	Path  string // JSON Pointer of the place: "/singer_state/bookmarks/users"
	Found string // what is in the way there: "a JSON string"
}

func (e *ClashError) Error() string {
	return fmt.Sprintf("cannot merge the partial state onto the stored one: at %s the stored state has %s, the partial one an object with keys", e.Path, e.Found)
}
