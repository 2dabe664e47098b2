package native

import "encoding/binary"

// Protocol revisions from which a block carries more. The numbers are
// ClickHouse's.
const (
	revisionTimeZone            = 54337 // DateTime's time zone in the type's name
	revisionCustomSerialization = 54454 // a flag before each column's values
)

// blockInfo is what precedes a block: field 1, not an overflow row; field 2, no
// bucket; the end.
var blockInfo = []byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}

// Writer rewrites blocks that the engine wrote for revision 0 into those of a
// client's revision.
type Writer struct {
	revision int
	zones    map[string]string
	types    map[string]column
}

// NewWriter makes a Writer for a client's revision. With zones, a DateTime column
// of that name gets the type that it names: revision 0 has no time zones.
func NewWriter(revision int, zones map[string]string) *Writer {
	return &Writer{revision: revision, zones: zones, types: map[string]column{}}
}

// NeedsZones tells whether data has a DateTime column that may have lost its time
// zone and whether the revision has room for it.
func NeedsZones(data []byte, revision int) bool {
	if revision < revisionTimeZone {
		return false
	}
	found := false
	w := NewWriter(revision, nil)
	c := &cursor{data: data}
	_ = w.block(c, nil, func(_, typ string) string {
		found = found || typ == "DateTime"
		return typ
	})
	return found
}

// Rewrite appends to out the blocks in data, which must be whole.
func (w *Writer) Rewrite(out, data []byte) ([]byte, error) {
	if w.revision == 0 {
		return append(out, data...), nil
	}
	c := &cursor{data: data}
	for c.pos < len(data) {
		if err := w.block(c, &out, w.zoned); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (w *Writer) zoned(name, typ string) string {
	if zoned, ok := w.zones[name]; ok && typ == "DateTime" && w.revision >= revisionTimeZone {
		return zoned
	}
	return typ
}

// block reads one block and, with out, writes it.
func (w *Writer) block(c *cursor, out *[]byte, rename func(name, typ string) string) error {
	columns, err := c.uvarint()
	if err != nil {
		return err
	}
	rows, err := c.uvarint()
	if err != nil {
		return err
	}
	var buf []byte
	if out != nil {
		buf = append(*out, blockInfo...)
		buf = binary.AppendUvarint(buf, uint64(columns))
		buf = binary.AppendUvarint(buf, uint64(rows))
	}
	for i := range columns {
		name, err := c.text()
		if err != nil {
			return err
		}
		typ, err := c.text()
		if err != nil {
			return err
		}
		renamed := rename(string(name), string(typ))
		start := c.pos
		if rows > 0 {
			if err := w.values(c, string(typ), rows, i == columns-1); err != nil {
				return err
			}
		}
		if out != nil {
			buf = appendText(buf, string(name))
			buf = appendText(buf, renamed)
			if w.revision >= revisionCustomSerialization {
				buf = append(buf, 0)
			}
			buf = append(buf, c.data[start:c.pos]...)
		}
	}
	if out != nil {
		*out = buf
	}
	return nil
}

func (w *Writer) values(c *cursor, typ string, rows int, last bool) error {
	col, ok := w.types[typ]
	if !ok {
		var err error
		if col, err = parseType(typ); err != nil {
			if last {
				// The engine hands out one block at a time, so the last column is
				// all that remains, whatever its layout.
				c.pos = len(c.data)
				return nil
			}
			return err
		}
		w.types[typ] = col
	}
	if err := col.prefix(c); err != nil {
		return err
	}
	return col.values(c, rows)
}

func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}
