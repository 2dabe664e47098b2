package clickhouse

import (
	"fmt"
	"strings"
)

// names are the tables' names, bare and as they stand in statements.
type names struct {
	schema, state, lock, history string // bare
	cluster                      string // " ON CLUSTER `c`", or empty
}

func (c Config) names() names {
	n := names{schema: c.Schema, state: c.Table, lock: c.Table + "_lock", history: c.Table + "_history"}
	if c.Cluster != "" {
		n.cluster = " ON CLUSTER " + quoteIdent(c.Cluster)
	}
	return n
}

// cells is the KeeperMap table of the strategy "keeper".
func (n names) cells() string { return n.lock + "_keeper" }

// replacement and replaced are the names that a migration of the lock table uses.
func (n names) replacement() string { return n.lock + "__new" }
func (n names) replaced() string    { return n.lock + "__old" }

func (n names) qualified(table string) string {
	return quoteIdent(n.schema) + "." + quoteIdent(table)
}

func (n names) State() string   { return n.qualified(n.state) }
func (n names) Lock() string    { return n.qualified(n.lock) }
func (n names) History() string { return n.qualified(n.history) }

// plain is the table as people write it, for messages.
func (n names) plain(table string) string { return n.schema + "." + table }

// quoteIdent writes an identifier in backticks. Characters that some reader of
// statements might take for more than a part of a name (clickhouse-go splits
// INSERT statements at parentheses, quotes and "SETTINGS x=") are written as
// \xHH, which ClickHouse reads in identifiers as in strings.
func quoteIdent(name string) string { return quote(name, '`', "`\\'\"()=;{}") }

// quoteString writes a string literal.
func quoteString(s string) string { return quote(s, '\'', "'\\`\"{}") }

func quote(s string, mark byte, special string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte(mark)
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == 0x7f || strings.IndexByte(special, c) >= 0 {
			fmt.Fprintf(&b, `\x%02X`, c)
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte(mark)
	return b.String()
}
