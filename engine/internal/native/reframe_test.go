package native

import (
	"encoding/binary"
	"errors"
	"testing"
)

// block builds a block of revision 0.
func block(rows int, columns ...[3]string) []byte {
	b := binary.AppendUvarint(nil, uint64(len(columns)))
	b = binary.AppendUvarint(b, uint64(rows))
	for _, c := range columns {
		b = appendText(b, c[0])
		b = appendText(b, c[1])
		b = append(b, c[2]...)
	}
	return b
}

func word(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		typ    string
		rows   int
		values string
	}{
		{"UInt8", 3, "abc"},
		{"Decimal(9, 2)", 1, "1234"},
		{"Decimal(38, 2)", 1, "1234567890123456"},
		{"Decimal(76, 2)", 1, "12345678901234567890123456789012"},
		{"DateTime64(3, 'Europe/Berlin')", 1, "12345678"},
		{"Enum8('a(,' = 1, 'b\\'' = 2)", 2, "ab"},
		{"IntervalDay", 1, "12345678"},
		{"FixedString(3)", 2, "abcdef"},
		{"String", 2, "\x00\x03a\nb"},
		{"Nullable(UInt16)", 2, "\x00\x01aabb"},
		{"Array(String)", 2, word(1) + word(2) + "\x01a\x01b"},
		{"Array(Array(UInt8))", 2, word(0) + word(2) + word(1) + word(3) + "abc"},
		{"Map(String, UInt8)", 1, word(1) + "\x01k" + "v"},
		{"Tuple(a UInt8, `b c` String)", 1, "x\x01y"},
		{"Tuple(UInt8, DateTime('UTC'))", 1, "x1234"},
		{"Tuple()", 2, "00"},
		{"Nested(a UInt8, b String)", 1, word(1) + "x\x01y"},
		{"LowCardinality(String)", 2, word(1) + word(0x600) + word(2) + "\x00\x01a" + word(2) + "\x01\x00"},
		{"LowCardinality(Nullable(String))", 1, word(1) + word(0x601) + word(1) + "\x00" + word(1) + "\x00\x00"},
		{"Array(LowCardinality(String))", 1, word(1) + word(0)},
		{"SimpleAggregateFunction(max, UInt32)", 1, "1234"},
		{"Variant(String, UInt8)", 3, word(0) + "\x00\xff\x01" + "\x01a" + "b"},
		{"JSON", 1, word(1) + "\x02{}"},
		{"Point", 1, "1234567812345678"},
		{"Polygon", 1, word(1) + word(1) + "1234567812345678"},
	} {
		data := block(c.rows, [3]string{"a", c.typ, c.values}, [3]string{"z", "UInt8", string(make([]byte, c.rows))})
		// Two blocks in a row, so that the end of the first must be right.
		out, err := NewWriter(54460, nil).Rewrite(nil, append(data, data...))
		if err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		one := append([]byte(nil), blockInfo...)
		one = append(one, 2, byte(c.rows))
		one = append(appendText(appendText(one, "a"), c.typ), 0)
		one = append(one, c.values...)
		one = append(appendText(appendText(one, "z"), "UInt8"), 0)
		one = append(one, make([]byte, c.rows)...)
		if string(out) != string(append(one, one...)) {
			t.Errorf("%s: got\n%q, not twice\n%q", c.typ, out, one)
		}
	}
}

func TestUnknownType(t *testing.T) {
	w := NewWriter(54460, nil)
	last := block(1, [3]string{"n", "UInt8", "x"}, [3]string{"a", "AggregateFunction(sum, UInt8)", "anything"})
	if out, err := w.Rewrite(nil, last); err != nil || len(out) != len(last)+len(blockInfo)+2 {
		t.Errorf("as the last column: %q, %v", out, err)
	}
	first := block(1, [3]string{"a", "Array(AggregateFunction(sum, UInt8))", "anything"}, [3]string{"n", "UInt8", "x"})
	var unsupported *UnsupportedError
	if _, err := w.Rewrite(nil, first); !errors.As(err, &unsupported) || unsupported.Type != "AggregateFunction(sum, UInt8)" {
		t.Errorf("before another: %v", err)
	}
}

func TestZones(t *testing.T) {
	data := block(1, [3]string{"at", "DateTime", "1234"}, [3]string{"b", "DateTime", "1234"})
	if !NeedsZones(data, 54405) || NeedsZones(data, 54000) || NeedsZones(block(1, [3]string{"a", "Date", "12"}), 54405) {
		t.Error("the need for zones is wrong")
	}
	out, err := NewWriter(54405, map[string]string{"at": "DateTime('UTC')"}).Rewrite(nil, data)
	want := string(blockInfo) + string(block(1, [3]string{"at", "DateTime('UTC')", "1234"}, [3]string{"b", "DateTime", "1234"}))
	if err != nil || string(out) != want {
		t.Errorf("got %q, %v", out, err)
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add(block(2, [3]string{"a", "Array(String)", word(1) + word(2) + "\x01a\x01b"}))
	f.Add(block(1, [3]string{"a", "LowCardinality(String)", word(1) + word(0x600) + word(1) + "\x00" + word(1) + "\x00"}))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = NewWriter(54460, nil).Rewrite(nil, data) // must not panic
		NeedsZones(data, 54460)
	})
}
