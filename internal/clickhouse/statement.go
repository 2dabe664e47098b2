package clickhouse

import (
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
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

// flag gives the literal of a UInt8 that is a boolean.
func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func (v *values) add(s, kind string) string {
	name := "p" + strconv.Itoa(len(*v))
	*v = append(*v, clickhouse.Named(name, s))
	return "{" + name + ":" + kind + "}"
}

// millis gives the expression of a DateTime64(3) from ticks, which no time
// zone shifts.
func (v *values) millis(n int64) string { return "fromUnixTimestamp64Milli(" + v.int64(n) + ")" }

// statement is one statement with its parameters.
type statement struct {
	text string
	args []any
}

// listBytes bounds the text of a list of ids in one statement: servers take
// statements of 256 KiB, and it has to hold one id of MaxIDBytes whose every
// byte is escaped.
const listBytes = 160 << 10

// ids gives the condition that state_id is one of the ids. Many are literals
// in the statement's text, which travels in the body: an external table would
// do as well, but accounts in readonly mode may not be allowed one.
func (v *values) ids(ids []string) string {
	if len(ids) == 1 {
		return "state_id = " + v.text(ids[0])
	}
	var b strings.Builder
	b.WriteString("state_id IN (")
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoteString(id))
	}
	b.WriteByte(')')
	return b.String()
}

// chunks cuts ids into pieces whose text is bounded.
func chunks(ids []string) [][]string {
	var out [][]string
	start, size := 0, 0
	for i, id := range ids {
		n := len(quoteString(id)) + 1
		if i > start && size+n > listBytes {
			out = append(out, ids[start:i])
			start, size = i, 0
		}
		size += n
	}
	if start < len(ids) {
		out = append(out, ids[start:])
	}
	return out
}
