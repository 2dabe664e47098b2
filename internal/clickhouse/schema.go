package clickhouse

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// column is one column of a table as it must be.
type column struct {
	name, kind, def string
}

// layout is a table as it must be.
type layout struct {
	columns []column
	version string // arguments of ReplacingMergeTree
	key     string // the sorting key: rows that agree in it replace each other
	tail    string // keys and TTL
	blocks  bool   // gets the settings that make deletes small
}

var stateLayout = layout{
	columns: []column{
		{name: "state_id", kind: "String"},
		{name: "partial_state", kind: "Nullable(String)"},
		{name: "completed_state", kind: "Nullable(String)"},
		{name: "updated_at", kind: "DateTime64(3)", def: "now64(3)"},
	},
	version: "updated_at",
	key:     "state_id",
	tail:    "ORDER BY state_id",
	blocks:  true,
}

var lockLayout = layout{
	columns: []column{
		{name: "state_id", kind: "String"},
		{name: "lock_id", kind: "String"},
		{name: "seq", kind: "UInt64", def: "0"},
		{name: "waiting", kind: "UInt8", def: "0"},
		{name: "released", kind: "UInt8", def: "0"},
		{name: "locked_at", kind: "DateTime64(3)", def: "now64(3)"},
		{name: "expires_at", kind: "DateTime64(3)", def: "locked_at + toIntervalSecond(300)"},
		{name: "ceiling", kind: "DateTime64(3)", def: "expires_at"},
		{name: "holder", kind: "String", def: "''"},
	},
	version: "seq, released",
	key:     "state_id, lock_id",
	tail: "PRIMARY KEY state_id ORDER BY (state_id, lock_id) " +
		"TTL toDateTime(greatest(locked_at, expires_at)) + toIntervalSecond(300)",
	blocks: true,
}

func historyLayout(days int) layout {
	return layout{
		columns: append(slices.Clone(stateLayout.columns),
			column{name: "archived_at", kind: "DateTime64(3)", def: "now64(3)"},
			column{name: "archived_by", kind: "String"},
			column{name: "reason", kind: "String"}),
		version: "archived_at",
		key:     "state_id, updated_at",
		tail:    fmt.Sprintf("ORDER BY (state_id, updated_at) TTL toDateTime(archived_at) + toIntervalDay(%d)", days),
	}
}

// create gives the statement that makes the table. ifMissing is left out where
// the making itself is a right that only one may have.
func (l layout) create(n names, name, engine string, mergeSet map[string]bool, ifMissing bool) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE ")
	if ifMissing {
		b.WriteString("IF NOT EXISTS ")
	}
	b.WriteString(n.qualified(name) + n.cluster + " (\n")
	for i, c := range l.columns {
		b.WriteString("    " + c.name + " " + c.kind)
		if c.def != "" {
			b.WriteString(" DEFAULT " + c.def)
		}
		if i < len(l.columns)-1 {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
	b.WriteString(") ENGINE = " + engineWith(engine, l.version) + "\n" + l.tail)
	if l.blocks {
		var on []string
		for _, name := range mergeTreeSettings {
			if mergeSet[name] {
				on = append(on, name+" = 1")
			}
		}
		if len(on) > 0 {
			b.WriteString("\nSETTINGS " + strings.Join(on, ", "))
		}
	}
	return b.String()
}

// engineWith adds the arguments of a Replacing engine to its name, which may
// have arguments of its own: ReplicatedReplacingMergeTree('/path', '{replica}').
func engineWith(engine, arguments string) string {
	if head, ok := strings.CutSuffix(strings.TrimSpace(engine), ")"); ok {
		if strings.HasSuffix(strings.TrimSpace(head), "(") {
			return head + arguments + ")"
		}
		return head + ", " + arguments + ")"
	}
	return engine + "(" + arguments + ")"
}

// engine chooses the engine of new tables.
func (c Config) engine(databaseEngine string, cloud bool) string {
	switch {
	case c.Engine != "" && c.Engine != "auto":
		return c.Engine
	case cloud:
		return "ReplacingMergeTree" // becomes Shared… there
	case c.Cluster != "" || databaseEngine == "Replicated":
		// Without a path of its own: the server's default_replica_path gives
		// each table one.
		return "ReplicatedReplacingMergeTree"
	default:
		return "ReplacingMergeTree"
	}
}

// check compares a table with its layout and says in what it differs. Further
// columns do no harm, as long as an INSERT may leave them out.
func (l layout) check(t *table) []string {
	var wrong []string
	for _, want := range l.columns {
		got, ok := t.columns[want.name]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is missing", want.name, want.kind))
		case !sameType(got, want.kind):
			wrong = append(wrong, fmt.Sprintf("column %s is %s instead of %s", want.name, got, want.kind))
		}
	}
	sort.Strings(wrong)
	if !strings.Contains(t.engine, "ReplacingMergeTree") {
		wrong = append(wrong, fmt.Sprintf("its engine is %s instead of ReplacingMergeTree", t.engine))
		return wrong
	}
	if version, _, _ := strings.Cut(l.version, ","); !strings.Contains(engineArguments(t.engineFull), version) {
		wrong = append(wrong, fmt.Sprintf("its engine keeps no newest row by %s", version))
	}
	if t.sortingKey != l.key {
		wrong = append(wrong, fmt.Sprintf("it is ordered by (%s) instead of (%s), so that not what it should replaces a row", t.sortingKey, l.key))
	}
	return wrong
}

func sameType(got, want string) bool {
	if got == want {
		return true
	}
	// DateTime64(3, 'UTC') is the same moment; a plain or low-cardinality
	// String holds all but NULL.
	if want == "DateTime64(3)" {
		return strings.HasPrefix(got, "DateTime64(3, ")
	}
	return got == "LowCardinality("+want+")"
}

// engineArguments cuts "ReplacingMergeTree(updated_at) ORDER BY …" down to the
// part before the keys.
func engineArguments(engineFull string) string {
	for _, word := range []string{" PARTITION BY ", " PRIMARY KEY ", " ORDER BY "} {
		if i := strings.Index(engineFull, word); i >= 0 {
			engineFull = engineFull[:i]
		}
	}
	return engineFull
}
