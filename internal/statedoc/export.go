package statedoc

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Entry is one state in Meltano's export, which is one object of
// {"completed": …, "partial": …} by state id. A half that is absent or null is nil.
type Entry struct {
	ID                 string
	Completed, Partial []byte
}

// EntryError says that one entry of an export cannot be used.
type EntryError struct {
	ID  string
	Err error
}

func (e *EntryError) Error() string { return fmt.Sprintf("the entry of state %q is %v", e.ID, e.Err) }

// Unwrap gives what is wrong with the entry.
func (e *EntryError) Unwrap() error { return e.Err }

// Entries reads an export, entry by entry. The halves share the text's memory;
// they are one object each. An error ends it: *EncodingError, *SyntaxError and
// *KindError are about the text as a whole, *EntryError is about one entry.
func Entries(export []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := entries(export, func(e Entry) bool { return yield(e, nil) }); err != nil {
			yield(Entry{}, err)
		}
	}
}

// entries is Entries as a loop; it ends early, without an error, when each says so.
func entries(src []byte, each func(Entry) bool) error {
	if err := checkUTF8(src); err != nil {
		return err
	}
	if p := newParser(src); p.dec.PeekKind() != '{' {
		n, err := parse(src) // not an object: say what it is
		if err != nil {
			return err
		}
		return &KindError{Found: string(n.kind)}
	}
	stopped := false
	end, err := members(src, func(written, value []byte) error {
		e, err := entryOf(written, value)
		if err == nil && !stopped {
			stopped = !each(e)
		}
		if stopped {
			return errStop
		}
		return err
	})
	if stopped {
		return nil
	}
	if err != nil {
		return err
	}
	if rest := bytes.TrimLeft(src[end:], " \t\r\n"); len(rest) > 0 {
		return &SyntaxError{Place: placeOf(src, len(src)-len(rest)), Reason: "there is more text after the end of " + string(object)}
	}
	return nil
}

// errStop ends members.
var errStop = fmt.Errorf("enough")

// members goes through the members of the object that a text begins with,
// without looking into their values, and gives where the object ends.
func members(src []byte, each func(written, value []byte) error) (end int, err error) {
	p := newParser(src)
	if _, err := p.dec.ReadToken(); err != nil {
		return 0, syntaxError(src, err)
	}
	for p.dec.PeekKind() != '}' {
		written, err := p.literal()
		if err != nil {
			return 0, syntaxError(src, err)
		}
		value, err := p.literal()
		if err != nil {
			return 0, syntaxError(src, err)
		}
		if err := each(written, value); err != nil {
			return 0, err
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return 0, syntaxError(src, err)
	}
	return int(p.dec.InputOffset()), nil
}

func entryOf(written, value []byte) (Entry, error) {
	id := unquote(written)
	if strings.HasPrefix(id, "\xff") {
		return Entry{}, &EntryError{ID: id[1:], Err: fmt.Errorf("under a name that is not Unicode text")}
	}
	e := Entry{ID: id}
	if found := kindOf(value); found != object {
		return e, &EntryError{ID: id, Err: &KindError{Found: string(found), Encoded: found == text && holdsObject(value)}}
	}
	halves, others := 0, ""
	_, err := members(value, func(written, value []byte) error {
		var half *[]byte
		name := unquote(written)
		switch name {
		case "completed":
			half = &e.Completed
		case "partial":
			half = &e.Partial
		default: // Meltano passes over what it does not know
			others = name
			return nil
		}
		halves++
		switch found := kindOf(value); found {
		case object:
			*half = value
		case null:
			*half = nil
		default:
			return &EntryError{ID: id, Err: fmt.Errorf("not usable: its %s half is %w", name,
				&KindError{Found: string(found), Encoded: found == text && holdsObject(value)})}
		}
		return nil
	})
	if err == nil && halves == 0 && others != "" {
		return e, &EntryError{ID: id, Err: fmt.Errorf(`an object with %q, but with neither "completed" nor "partial"`, others)}
	}
	return e, err
}

// kindOf tells what a JSON value is by how it begins.
func kindOf(value []byte) kind {
	switch value[0] {
	case '{':
		return object
	case '[':
		return array
	case '"':
		return text
	case 't', 'f':
		return boolean
	case 'n':
		return null
	default:
		return number
	}
}

// AppendEntry appends `"id":{"completed":…,"partial":…}` to an export; an empty
// half becomes {}. Errors as Check's, with the half's name before them, and one for an id
// that is not UTF-8, which JSON has no letters for; b comes back unchanged then.
func AppendEntry(b []byte, e Entry) ([]byte, error) {
	out, err := jsontext.AppendQuote(b, e.ID)
	if err != nil {
		return b, fmt.Errorf("its id is not UTF-8")
	}
	for _, h := range []struct {
		name, before string
		text         []byte
	}{{"completed", `:{"completed":`, e.Completed}, {"partial", `,"partial":`, e.Partial}} {
		out = append(out, h.before...)
		n, err := parseHalf(h.text)
		if err != nil {
			return b, fmt.Errorf("its %s half is %w", h.name, err)
		}
		out = n.append(out, -1)
	}
	return append(out, '}'), nil
}
