package statedoc

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Bookmark is what a state knows of one stream, as far as taps agree on how
// to write it.
type Bookmark struct {
	Stream string
	// Key is the replication key, "" where the state does not name it.
	Key string
	// Value is where the stream got to, a JSON literal; the whole bookmark where
	// it is of no known form, nil where there is none. Of a bookmark in
	// partitions it is the greatest.
	Value []byte
	// Partitions is how many partitions the bookmark has, 0 for none.
	Partitions int
}

const (
	wrapper        = "singer_state"
	bookmarksName  = "bookmarks"
	keyName        = "replication_key"
	valueName      = "replication_key_value"
	partitionsName = "partitions"
)

// notKeys are members of a bookmark that tell how it was made, not where the
// stream got to.
var notKeys = []string{"last_replication_method", "version", "starting_replication_value"}

// Bookmarks gives the bookmarks of a state, in its order. Errors as Check's.
func Bookmarks(state []byte) ([]Bookmark, error) {
	n, err := parseHalf(state)
	if err != nil {
		return nil, err
	}
	streams := n.streams()
	if streams == nil {
		return nil, nil
	}
	out := make([]Bookmark, 0, len(streams.members))
	for _, m := range streams.members {
		b := bookmarkOf(m.value)
		b.Stream = clean(m.name)
		out = append(out, b)
	}
	return out, nil
}

// streams gives the object that has the bookmarks by stream, or nil.
func (n *node) streams() *node {
	singer := n.find(wrapper)
	if singer == nil || singer.kind != object {
		return nil
	}
	if found := singer.find(bookmarksName); found != nil && found.kind == object {
		return found
	}
	return nil
}

// bookmarkOf reads one bookmark: the SDK's form, the SDK's partitions, a
// single value under the replication key's name, or the bare value.
func bookmarkOf(n *node) Bookmark {
	if n.kind != object {
		return Bookmark{Value: valueOf(n)}
	}
	if value := n.find(valueName); value != nil {
		return Bookmark{Key: n.text(keyName), Value: valueOf(value)}
	}
	if parts := n.find(partitionsName); parts != nil && parts.kind == array {
		b := Bookmark{Key: n.text(keyName), Partitions: len(parts.elems)}
		for _, p := range parts.elems {
			if p.kind != object {
				continue
			}
			one := bookmarkOf(p)
			b.Key = cmp.Or(b.Key, one.Key)
			if one.Value != nil && p.find(valueName) != nil && greater(one.Value, b.Value) {
				b.Value = one.Value
			}
		}
		return b
	}
	if key := n.text(keyName); key != "" {
		return Bookmark{Key: key}
	}
	var only []member
	for _, m := range n.members {
		if m.value.kind != null && !slices.Contains(notKeys, m.name) {
			only = append(only, m)
		}
	}
	switch {
	case len(only) == 0:
		return Bookmark{}
	case len(only) == 1 && only[0].value.kind != object && only[0].value.kind != array:
		return Bookmark{Key: clean(only[0].name), Value: valueOf(only[0].value)}
	default:
		return Bookmark{Value: valueOf(n)}
	}
}

func valueOf(n *node) []byte {
	if n.kind == null {
		return nil
	}
	return n.append(nil, -1)
}

// text gives the text of a member that is a string, else "".
func (n *node) text(name string) string {
	if m := n.find(name); m != nil && m.kind == text {
		return clean(unquote(m.literal))
	}
	return ""
}

// clean takes off the mark of a text that has no UTF-8 form.
func clean(name string) string { return strings.TrimPrefix(name, "\xff") }

// greater compares two literals: numbers by value, all else by text, which
// orders times of one form.
func greater(a, b []byte) bool {
	if b == nil {
		return true
	}
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	if errX == nil && errY == nil && x != y {
		return x > y
	}
	if len(a) != len(b) && errX == nil && errY == nil {
		return len(a) > len(b)
	}
	return string(a) > string(b)
}

// Forget removes the bookmarks of streams from a state and gives the names
// that were there; all else keeps its literals. A state without any of them
// comes back as it was. Errors as Check's.
func Forget(state []byte, streams ...string) (kept []byte, forgotten []string, err error) {
	n, err := parseHalf(state)
	if err != nil {
		return nil, nil, err
	}
	there := n.streams()
	if there == nil {
		return state, nil, nil
	}
	there.members = slices.DeleteFunc(there.members, func(m member) bool {
		gone := slices.Contains(streams, m.name)
		if gone {
			forgotten = append(forgotten, m.name)
		}
		return gone
	})
	if forgotten == nil {
		return state, nil, nil
	}
	return n.append(make([]byte, 0, len(state)), -1), forgotten, nil
}
