package clickhouse

import (
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
)

// values collects the parameters of one statement: each method gives the text
// that stands for the value in the statement.
type values []any

// longText is where a text stops being a parameter, which travels in the URL
// (servers and proxies bound that), and becomes a literal, which travels in
// the body.
const longText = 2 << 10

func (v *values) text(s string) string {
	if len(s) > longText {
		return quoteString(s)
	}
	return v.add(s, "String")
}

func (v *values) int64(n int64) string   { return v.add(strconv.FormatInt(n, 10), "Int64") }
func (v *values) uint64(n uint64) string { return v.add(strconv.FormatUint(n, 10), "UInt64") }

func (v *values) flag(b bool) string {
	if b {
		return "toUInt8(1)"
	}
	return "toUInt8(0)"
}

func (v *values) add(s, kind string) string {
	name := "p" + strconv.Itoa(len(*v))
	*v = append(*v, clickhouse.Named(name, s))
	return "{" + name + ":" + kind + "}"
}

// millis gives the expression of a DateTime64(3) from ticks, which no time
// zone shifts.
func (v *values) millis(n int64) string { return "fromUnixTimestamp64Milli(" + v.int64(n) + ")" }

// statement is one statement with its parameters and external tables.
type statement struct {
	text   string
	args   []any
	tables []*ext.Table
}

// idsTable is the external table that carries many state ids in the request's body.
const idsTable = "_chstate_ids"

// ids gives the condition that state_id is one of the ids.
func (s *statement) ids(v *values, ids []string) (condition string, err error) {
	if len(ids) == 1 {
		return "state_id = " + v.text(ids[0]), nil
	}
	t, err := ext.NewTable(idsTable, ext.Column("state_id", "String"))
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if err := t.Append(id); err != nil {
			return "", err
		}
	}
	s.tables = append(s.tables, t)
	return "state_id IN (SELECT state_id FROM " + idsTable + ")", nil
}

// chunks cuts ids into pieces whose text is bounded.
func chunks(ids []string) [][]string {
	const most, bytes = 10_000, 1 << 20
	var out [][]string
	start, size := 0, 0
	for i, id := range ids {
		if i > start && (i-start == most || size+len(id) > bytes) {
			out = append(out, ids[start:i])
			start, size = i, 0
		}
		size += len(id)
	}
	if start < len(ids) {
		out = append(out, ids[start:])
	}
	return out
}
