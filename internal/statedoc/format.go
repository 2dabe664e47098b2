package statedoc

// Compact gives a state on one line without spaces, number and string literals as they are.
func Compact(text []byte) ([]byte, error) { return format(text, -1) }

// Pretty gives a state indented by two spaces, as Python's json.dumps(indent=2)
// lays it out, without a newline at the end.
func Pretty(text []byte) ([]byte, error) { return format(text, 0) }

func format(text []byte, depth int) ([]byte, error) {
	n, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	return n.append(make([]byte, 0, len(text)), depth), nil
}

// append writes the value: on one line where depth is negative, else indented,
// depth levels deep already.
func (n *node) append(b []byte, depth int) []byte {
	switch n.kind {
	case object:
		if len(n.members) == 0 {
			return append(b, "{}"...)
		}
		b = append(b, '{')
		for i, m := range n.members {
			b = separate(b, i, depth)
			b = append(b, m.written...)
			b = append(b, ':')
			if depth >= 0 {
				b = append(b, ' ')
			}
			b = m.value.append(b, deeper(depth))
		}
		return append(newline(b, depth), '}')
	case array:
		if len(n.elems) == 0 {
			return append(b, "[]"...)
		}
		b = append(b, '[')
		for i, e := range n.elems {
			b = separate(b, i, depth)
			b = e.append(b, deeper(depth))
		}
		return append(newline(b, depth), ']')
	default:
		return append(b, n.literal...)
	}
}

func deeper(depth int) int {
	if depth < 0 {
		return depth
	}
	return depth + 1
}

// separate goes before the i-th part of an object or array at a depth.
func separate(b []byte, i, depth int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return newline(b, deeper(depth))
}

func newline(b []byte, depth int) []byte {
	if depth < 0 {
		return b
	}
	b = append(b, '\n')
	for range depth {
		b = append(b, "  "...)
	}
	return b
}
