package native

import (
	"encoding/binary"
	"errors"
	"math"
)

// errShort says that a block ends before its last value.
var errShort = errors.New("the engine's Native block is cut short")

// cursor is a position in the bytes of blocks.
type cursor struct {
	data []byte
	pos  int
}

func (c *cursor) skip(n int) error {
	if n < 0 || n > len(c.data)-c.pos {
		return errShort
	}
	c.pos += n
	return nil
}

// skipValues skips rows values of size bytes each.
func (c *cursor) skipValues(rows, size int) error {
	if size != 0 && rows > math.MaxInt/size {
		return errShort
	}
	return c.skip(rows * size)
}

func (c *cursor) uvarint() (int, error) {
	v, n := binary.Uvarint(c.data[c.pos:])
	if n <= 0 || v > math.MaxInt32*1024 {
		return 0, errShort
	}
	c.pos += n
	return int(v), nil
}

func (c *cursor) uint64() (uint64, error) {
	if len(c.data)-c.pos < 8 {
		return 0, errShort
	}
	v := binary.LittleEndian.Uint64(c.data[c.pos:])
	c.pos += 8
	return v, nil
}

func (c *cursor) count() (int, error) {
	v, err := c.uint64()
	if err != nil || v > math.MaxInt {
		return 0, errShort
	}
	return int(v), nil
}

func (c *cursor) text() ([]byte, error) {
	n, err := c.uvarint()
	if err != nil {
		return nil, err
	}
	start := c.pos
	if err := c.skip(n); err != nil {
		return nil, err
	}
	return c.data[start:c.pos], nil
}

// fixed is a type whose values have so many bytes each.
type fixed int

func (fixed) prefix(*cursor) error               { return nil }
func (f fixed) values(c *cursor, rows int) error { return c.skipValues(rows, int(f)) }

type text struct{}

func (text) prefix(*cursor) error { return nil }
func (text) values(c *cursor, rows int) error {
	for range rows {
		if _, err := c.text(); err != nil {
			return err
		}
	}
	return nil
}

// jsonText is JSON written as text (output_format_native_write_json_as_string).
type jsonText struct{ text }

func (jsonText) prefix(c *cursor) error {
	version, err := c.uint64()
	if err != nil {
		return err
	}
	if version != 1 {
		return &UnsupportedError{Type: "JSON (without output_format_native_write_json_as_string=1)"}
	}
	return nil
}

type nullable struct{ inner column }

func (n nullable) prefix(c *cursor) error { return n.inner.prefix(c) }
func (n nullable) values(c *cursor, rows int) error {
	if err := c.skip(rows); err != nil {
		return err
	}
	return n.inner.values(c, rows)
}

// array is its end offsets, then the elements of all rows.
type array struct{ inner column }

func (a array) prefix(c *cursor) error { return a.inner.prefix(c) }
func (a array) values(c *cursor, rows int) error {
	if rows == 0 {
		return nil
	}
	if err := c.skipValues(rows-1, 8); err != nil {
		return err
	}
	elements, err := c.count()
	if err != nil {
		return err
	}
	return a.inner.values(c, elements)
}

type tuple []column

func (t tuple) prefix(c *cursor) error {
	for _, e := range t {
		if err := e.prefix(c); err != nil {
			return err
		}
	}
	return nil
}

func (t tuple) values(c *cursor, rows int) error {
	if len(t) == 0 {
		return c.skip(rows) // a placeholder byte each
	}
	for _, e := range t {
		if err := e.values(c, rows); err != nil {
			return err
		}
	}
	return nil
}

// lowCardinality is a dictionary and the rows' positions in it.
type lowCardinality struct{ inner column }

func (lowCardinality) prefix(c *cursor) error { return c.skip(8) }
func (l lowCardinality) values(c *cursor, rows int) error {
	if rows == 0 {
		return nil
	}
	flags, err := c.uint64()
	if err != nil {
		return err
	}
	keys, err := c.count()
	if err != nil {
		return err
	}
	if err := l.inner.values(c, keys); err != nil {
		return err
	}
	positions, err := c.count()
	if err != nil {
		return err
	}
	return c.skipValues(positions, 1<<(flags&3))
}

// variant is one byte a row that says which type it has (255: NULL), then each
// type's values.
type variant []column

func (v variant) prefix(c *cursor) error {
	mode, err := c.uint64()
	if err != nil {
		return err
	}
	if mode != 0 {
		return &UnsupportedError{Type: "Variant in compact mode"}
	}
	return tuple(v).prefix(c)
}

func (v variant) values(c *cursor, rows int) error {
	start := c.pos
	if err := c.skip(rows); err != nil {
		return err
	}
	var counts [256]int
	for _, which := range c.data[start:c.pos] {
		counts[which]++
	}
	for i, e := range v {
		if err := e.values(c, counts[i]); err != nil {
			return err
		}
	}
	return nil
}
