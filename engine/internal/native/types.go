// Package native rewrites blocks of ClickHouse's Native format for clients that
// name a protocol revision: the engine writes them for revision 0 only.
package native

import (
	"fmt"
	"strconv"
	"strings"
)

// column knows how the values of one type are laid out, just enough to find
// where they end.
type column interface {
	// prefix skips what stands once before the values.
	prefix(c *cursor) error
	// values skips the values of so many rows.
	values(c *cursor, rows int) error
}

// UnsupportedError names a type whose layout this package does not know.
type UnsupportedError struct{ Type string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("type %s is not known to this program's Native writer", e.Type)
}

// sizes are the types whose values have a fixed size, in bytes.
var sizes = map[string]int{
	"Int8": 1, "UInt8": 1, "Bool": 1, "Enum8": 1, "Nothing": 1,
	"Int16": 2, "UInt16": 2, "Enum16": 2, "Date": 2, "BFloat16": 2,
	"Int32": 4, "UInt32": 4, "Float32": 4, "Date32": 4, "DateTime": 4, "IPv4": 4, "Time": 4,
	"Int64": 8, "UInt64": 8, "Float64": 8, "DateTime64": 8, "Time64": 8,
	"Int128": 16, "UInt128": 16, "UUID": 16, "IPv6": 16,
	"Int256": 32, "UInt256": 32,
}

// aliases are the types that are written as another one.
var aliases = map[string]string{
	"Point":           "Tuple(Float64, Float64)",
	"Ring":            "Array(Point)",
	"LineString":      "Array(Point)",
	"MultiLineString": "Array(LineString)",
	"Polygon":         "Array(Ring)",
	"MultiPolygon":    "Array(Polygon)",
}

func parseType(name string) (column, error) {
	head, args := splitType(name)
	if size, ok := sizes[head]; ok {
		return fixed(size), nil
	}
	if alias, ok := aliases[head]; ok {
		return parseType(alias)
	}
	if strings.HasPrefix(head, "Interval") {
		return fixed(8), nil
	}
	switch head {
	case "String":
		return text{}, nil
	case "JSON":
		return jsonText{}, nil
	case "FixedString":
		if len(args) == 1 {
			if n, err := strconv.Atoi(args[0]); err == nil {
				return fixed(n), nil
			}
		}
	case "Decimal":
		if len(args) == 2 {
			if precision, err := strconv.Atoi(args[0]); err == nil {
				return fixed(decimalSize(precision)), nil
			}
		}
	case "Nullable":
		if len(args) == 1 {
			return wrap(args[0], func(c column) column { return nullable{c} })
		}
	case "Array":
		if len(args) == 1 {
			return wrap(args[0], func(c column) column { return array{c} })
		}
	case "LowCardinality":
		if len(args) == 1 {
			inner := args[0]
			// The dictionary holds plain values, NULL being its first entry.
			if h, a := splitType(inner); h == "Nullable" && len(a) == 1 {
				inner = a[0]
			}
			return wrap(inner, func(c column) column { return lowCardinality{c} })
		}
	case "Map":
		if len(args) == 2 {
			return wrapAll(args, func(c []column) column { return array{tuple(c)} })
		}
	case "Tuple":
		return wrapAll(unnamed(args), func(c []column) column { return tuple(c) })
	case "Nested":
		return wrapAll(unnamed(args), func(c []column) column { return array{tuple(c)} })
	case "Variant":
		return wrapAll(args, func(c []column) column { return variant(c) })
	case "SimpleAggregateFunction":
		if len(args) >= 2 {
			return parseType(args[len(args)-1])
		}
	}
	return nil, &UnsupportedError{Type: name}
}

func wrap(inner string, build func(column) column) (column, error) {
	c, err := parseType(inner)
	if err != nil {
		return nil, err
	}
	return build(c), nil
}

func wrapAll(inner []string, build func([]column) column) (column, error) {
	columns := make([]column, len(inner))
	for i, name := range inner {
		c, err := parseType(name)
		if err != nil {
			return nil, err
		}
		columns[i] = c
	}
	return build(columns), nil
}

func decimalSize(precision int) int {
	switch {
	case precision <= 9:
		return 4
	case precision <= 18:
		return 8
	case precision <= 38:
		return 16
	}
	return 32
}

// splitType takes "Map(String, Array(UInt8))" apart: Map; String, Array(UInt8).
func splitType(name string) (head string, args []string) {
	open := strings.IndexByte(name, '(')
	if open < 0 {
		return name, nil
	}
	head = strings.TrimSpace(name[:open])
	body := strings.TrimSuffix(name[open+1:], ")")
	depth, start := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '\'', '`':
			i = skipQuoted(body, i)
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(body[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(body[start:]); last != "" || len(args) > 0 {
		args = append(args, last)
	}
	return head, args
}

// skipQuoted returns the position of the quote that closes the one at i.
func skipQuoted(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case s[i]:
			return j
		}
	}
	return len(s)
}

// unnamed drops the names from a tuple's elements: "a UInt8" is UInt8.
func unnamed(elements []string) []string {
	types := make([]string, len(elements))
	for i, e := range elements {
		types[i] = e
		if strings.HasPrefix(e, "`") {
			end := skipQuoted(e, 0)
			if end+1 < len(e) {
				types[i] = strings.TrimSpace(e[end+1:])
			}
			continue
		}
		space, paren := strings.IndexByte(e, ' '), strings.IndexByte(e, '(')
		if space > 0 && (paren < 0 || space < paren) {
			types[i] = strings.TrimSpace(e[space+1:])
		}
	}
	return types
}
