package statedoc

// kind says what a JSON value is, in words for people.
type kind string

const (
	object  kind = "a JSON object"
	array   kind = "a JSON list"
	text    kind = "a JSON string"
	number  kind = "a JSON number"
	boolean kind = "a JSON boolean"
	null    kind = "null"
)

// A node is one JSON value. Scalars keep their literal; objects and arrays
// keep their parts.
type node struct {
	kind    kind
	literal []byte         // of a scalar, as it was written
	members []member       // of an object, in order, names unique
	index   map[string]int // of a large object: where a name stands in members
	elems   []*node        // of an array
}

// A member is one name and value of an object. The name is kept as it was
// written (with its quotes and escapes) beside the text it stands for.
type member struct {
	written []byte
	name    string
	value   *node
}

// indexFrom is the number of members from which an object gets an index: below
// it a scan is as fast and costs no memory.
const indexFrom = 16

// position gives the place of a name in members, or -1.
func (n *node) position(name string) int {
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range n.members {
		if n.members[i].name == name {
			return i
		}
	}
	return -1
}

// find gives the value of a name, or nil.
func (n *node) find(name string) *node {
	if i := n.position(name); i >= 0 {
		return n.members[i].value
	}
	return nil
}

// put sets a member's value as a Python dict does: a name that is there keeps
// its place and its spelling.
func (n *node) put(m member) {
	if i := n.position(m.name); i >= 0 {
		n.members[i].value = m.value
		return
	}
	n.members = append(n.members, m)
	switch {
	case n.index != nil:
		n.index[m.name] = len(n.members) - 1
	case len(n.members) >= indexFrom:
		n.index = make(map[string]int, 2*len(n.members))
		for i := range n.members {
			n.index[n.members[i].name] = i
		}
	}
}
