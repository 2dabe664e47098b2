package statedoc

import (
	"strings"
)

// Merge merges the members of src into dest at depth, as Meltano's merge()
// does, and gives the merged object on one line. Either may be empty, absent
// or null, which counts as {}.
//
// Merging a stored state's partial half onto its completed half
// (Merge(partial, completed)) gives the state that the next run starts from.
//
// Errors: *SyntaxError, *EncodingError, *KindError for a text that is no JSON
// object; *ClashError where an object with keys meets something else.
func Merge(src, dest []byte) ([]byte, error) {
	s, err := parseHalf(src)
	if err != nil {
		return nil, err
	}
	d, err := parseHalf(dest)
	if err != nil {
		return nil, err
	}
	if err := merge(s, d, nil); err != nil {
		return nil, err
	}
	return d.append(make([]byte, 0, len(src)+len(dest)+2), -1), nil
}

// parseHalf reads one half of a state; what is absent is an object without keys.
func parseHalf(text []byte) (*node, error) {
	if Empty(text) {
		return &node{kind: object}, nil
	}
	return parseObject(text)
}

// merge follows Meltano's function line by line, its gaps included: an object
// without keys leaves whatever it meets as it is.
func merge(src, dest *node, path []string) error {
	for _, m := range src.members {
		if m.value.kind != object {
			dest.put(m)
			continue
		}
		below := dest.find(m.name)
		if below == nil {
			below = &node{kind: object}
			dest.put(member{written: m.written, name: m.name, value: below})
		}
		if below.kind != object && len(m.value.members) > 0 {
			return &ClashError{Path: pointer(append(path, m.name)), Found: string(below.kind)}
		}
		if err := merge(m.value, below, append(path, m.name)); err != nil {
			return err
		}
	}
	return nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer writes a path as a JSON Pointer (RFC 6901).
func pointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		_, _ = pointerEscapes.WriteString(&b, strings.TrimPrefix(name, "\xff"))
	}
	return b.String()
}
