package statedoc

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Change is one place in which two states differ.
type Change struct {
	// Stream is the stream whose bookmark it is in, "" outside of the bookmarks.
	Stream string
	// Path is the place within the bookmark, "" for the whole of it; outside of
	// the bookmarks it begins at the top: `partitions[{"org":"acme"}].lsn`.
	Path string
	// Old and New are the values as one-line JSON; nil where there was none or is none.
	Old, New []byte
}

// Diff compares two states as Meltano would see them: the order of names, the
// spaces and the spelling of strings make no difference; number literals do.
// Lists of partitions are matched by their contexts. Changes come in the order
// of the old state, then what is new in that of the new one. Errors as Check's.
func Diff(old, now []byte) ([]Change, error) {
	a, err := parseHalf(old)
	if err != nil {
		return nil, err
	}
	b, err := parseHalf(now)
	if err != nil {
		return nil, err
	}
	var d differ
	d.top(a, b)
	return d.changes, nil
}

type differ struct {
	stream  string
	changes []Change
}

// top goes down to the bookmarks by hand, so that each stream stands for itself.
func (d *differ) top(a, b *node) {
	if a.streams() == nil || b.streams() == nil {
		// One of them has no bookmarks to compare by: as if they were empty.
		a, b = a.withStreams(), b.withStreams()
	}
	streamsA, streamsB := a.streams(), b.streams()
	if streamsA == nil || streamsB == nil {
		d.values(a, b, "")
		return
	}
	pairs(streamsA, streamsB, func(name string, x, y *node) {
		d.stream = clean(name)
		d.values(x, y, "")
	})
	d.stream = ""
	pairs(a, b, func(name string, x, y *node) {
		if name != wrapper {
			d.values(x, y, step(name))
			return
		}
		pairs(x, y, func(inner string, x, y *node) {
			if inner != bookmarksName {
				d.values(x, y, join(wrapper, step(inner)))
			}
		})
	})
}

// withStreams gives the state with an empty object for bookmarks that are
// absent, the state itself where something else stands in their place.
func (n *node) withStreams() *node {
	none := member{written: []byte(`"` + bookmarksName + `"`), name: bookmarksName, value: &node{kind: object}}
	singer := n.find(wrapper)
	switch {
	case singer == nil:
		out := &node{kind: object, members: slices.Clone(n.members)}
		out.put(member{written: []byte(`"` + wrapper + `"`), name: wrapper, value: &node{kind: object, members: []member{none}}})
		return out
	case singer.kind == object && singer.find(bookmarksName) == nil:
		out := &node{kind: object, members: slices.Clone(n.members)}
		out.put(member{name: wrapper, value: &node{kind: object, members: append(slices.Clone(singer.members), none)}})
		return out
	default:
		return n
	}
}

// pairs goes through the members of two objects, those of the first in front.
func pairs(a, b *node, each func(name string, x, y *node)) {
	for _, m := range a.members {
		each(m.name, m.value, b.find(m.name))
	}
	for _, m := range b.members {
		if a.find(m.name) == nil {
			each(m.name, nil, m.value)
		}
	}
}

// values compares what stands at a path; nil is nothing.
func (d *differ) values(a, b *node, path string) {
	switch {
	case a == nil || b == nil:
		d.add(a, b, path)
	case a.kind == object && b.kind == object:
		pairs(a, b, func(name string, x, y *node) { d.values(x, y, join(path, step(name))) })
	case a.kind == array && b.kind == array:
		d.lists(a, b, path)
	case !equal(a, b):
		d.add(a, b, path)
	}
}

func (d *differ) add(a, b *node, path string) {
	c := Change{Stream: d.stream, Path: path}
	if a != nil {
		c.Old = a.append(nil, -1)
	}
	if b != nil {
		c.New = b.append(nil, -1)
	}
	d.changes = append(d.changes, c)
}

// lists compares element by element where it is clear which belong together,
// else as a whole.
func (d *differ) lists(a, b *node, path string) {
	byA, okA := a.byContext()
	byB, okB := b.byContext()
	switch {
	case okA && okB:
		pairs(byA, byB, func(name string, x, y *node) { d.values(x, y, path+"["+name+"]") })
	case len(a.elems) == len(b.elems):
		for i := range a.elems {
			d.values(a.elems[i], b.elems[i], fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		d.add(a, b, path)
	}
}

// byContext gives a list of partitions as an object with their contexts for names.
func (n *node) byContext() (*node, bool) {
	out := &node{kind: object}
	for _, e := range n.elems {
		if e.kind != object || e.find("context") == nil {
			return nil, false
		}
		name := string(e.find("context").sorted().append(nil, -1))
		if out.find(name) != nil {
			return nil, false
		}
		out.put(member{name: name, value: e})
	}
	return out, true
}

// sorted gives a value with the names of its objects in order.
func (n *node) sorted() *node {
	if n.kind != object {
		return n
	}
	out := &node{kind: object, members: slices.Clone(n.members)}
	slices.SortFunc(out.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for i := range out.members {
		out.members[i].value = out.members[i].value.sorted()
	}
	return out
}

func equal(a, b *node) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case text:
		return unquote(a.literal) == unquote(b.literal)
	case array:
		return slices.EqualFunc(a.elems, b.elems, equal)
	case object:
		same := len(a.members) == len(b.members)
		pairs(a, b, func(_ string, x, y *node) { same = same && x != nil && y != nil && equal(x, y) })
		return same
	default:
		return string(a.literal) == string(b.literal)
	}
}

var plainName = regexp.MustCompile(`^[\pL\pN_$-]+$`)

// step writes a name of a path: as it is, or as JSON where it would not be clear.
func step(name string) string {
	name = clean(name)
	if plainName.MatchString(name) {
		return name
	}
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil { // not UTF-8; then it is an escape already
		return name
	}
	return string(quoted)
}

func join(path, step string) string {
	if path == "" {
		return step
	}
	return path + "." + step
}
