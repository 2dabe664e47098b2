package clickhouse

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// server is what one look at the server found.
type server struct {
	version  string
	known    map[string]setting // of knownSettings, those that exist
	mergeSet map[string]bool    // of mergeTreeSettings, those that exist
	engine   string             // the schema's database engine, empty when there is no such database
	tables   map[string]*table  // by bare name
	state    *table             // after the tables are there
	history  bool               // there is a history table, and it is to be filled
	keeper   bool               // the lock's log is in Keeper
	answered func()             // not nil: nothing was found, all is assumed
}

type setting struct {
	value string
	fixed bool // this user may not change it
}

// table is one table as system.tables and system.columns have it.
type table struct {
	name       string
	engine     string // ReplacingMergeTree
	engineFull string
	sortingKey string
	age        int64 // seconds since its metadata changed
	comment    string
	columns    map[string]string
	defaults   map[string]string
}

// mergeTreeSettings let a DELETE be a small patch where the server knows them.
var mergeTreeSettings = []string{"enable_block_number_column", "enable_block_offset_column"}

// replicated says whether several replicas may answer for the tables.
func (s *server) replicated() bool {
	if s.state != nil {
		return strings.HasPrefix(s.state.engine, "Replicated") || s.shared()
	}
	return false
}

// shared says whether the tables are ClickHouse Cloud's.
func (s *server) shared() bool {
	return s.cloud() || (s.state != nil && strings.HasPrefix(s.state.engine, "Shared"))
}

func (s *server) cloud() bool { return s.known["cloud_mode"].value == "1" }

// tornTries bounds how often a look is repeated that others' DDL came into the
// middle of: what seems so for longer is a table of somebody's own making.
const tornTries = 5

// probe learns in one statement all that is needed of the server.
func (db *DB) probe(ctx context.Context) (*server, error) {
	for tries := 1; ; tries++ {
		s, err := db.probeOnce(ctx)
		if err != nil || !db.torn(s) || tries == tornTries {
			return s, err
		}
		if err := db.pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// torn says that tables were made, or changed their names, while they were
// looked at: there are columns of no table or a table without columns, or the
// columns are of one and the keys of another.
func (db *DB) torn(s *server) bool {
	for _, t := range s.tables {
		if (t.engine == "") != (len(t.columns) == 0) {
			return true
		}
	}
	for _, name := range []string{db.names.lock, db.names.replacement(), db.names.replaced()} {
		t := s.tables[name]
		if t != nil && t.columns["lock_id"] != "" && (t.sortingKey == "state_id") == (t.columns["seq"] != "") {
			return true
		}
	}
	return false
}

func (db *DB) probeOnce(ctx context.Context) (*server, error) {
	var v values
	schema := v.text(db.names.schema)
	var list []string
	for _, t := range []string{db.names.state, db.names.lock, db.names.history, db.names.cells(), db.names.replacement(), db.names.replaced()} {
		list = append(list, v.text(t))
	}
	tables := strings.Join(list, ", ")
	text := "SELECT 'server' AS kind, version() AS a, '' AS b, '' AS c, '' AS d, '' AS e" +
		" UNION ALL SELECT 'setting', name, value, toString(readonly), '', '' FROM system.settings WHERE name IN (" + quoted(knownSettings) + ")" +
		" UNION ALL SELECT 'merge', name, '', '', '', '' FROM system.merge_tree_settings WHERE name IN (" + quoted(mergeTreeSettings) + ")" +
		" UNION ALL SELECT 'database', engine, '', '', '', '' FROM system.databases WHERE name = " + schema +
		" UNION ALL SELECT 'table', name, engine, engine_full, sorting_key, toString(dateDiff('second', metadata_modification_time, now()))" +
		" FROM system.tables WHERE database = " + schema + " AND name IN (" + tables + ")" +
		" UNION ALL SELECT 'comment', name, comment, '', '', '' FROM system.tables WHERE database = " + schema + " AND name IN (" + tables + ") AND comment != ''" +
		" UNION ALL SELECT 'column', table, name, type, default_kind, '' FROM system.columns WHERE database = " + schema + " AND table IN (" + tables + ")"

	type line struct{ kind, a, b, c, d, e string }
	lines, err := collect(ctx, db, nil, forProbe, statement{text: text, args: v}, func(rows driver.Rows) (l line, err error) {
		err = rows.Scan(&l.kind, &l.a, &l.b, &l.c, &l.d, &l.e)
		return l, err
	})
	if err != nil {
		return nil, err
	}
	s := &server{known: map[string]setting{}, mergeSet: map[string]bool{}, tables: map[string]*table{}}
	at := func(name string) *table {
		if s.tables[name] == nil {
			s.tables[name] = &table{name: name, columns: map[string]string{}, defaults: map[string]string{}}
		}
		return s.tables[name]
	}
	for _, l := range lines {
		switch l.kind {
		case "server":
			s.version = l.a
		case "setting":
			s.known[l.a] = setting{value: l.b, fixed: l.c != "0"}
		case "merge":
			s.mergeSet[l.a] = true
		case "database":
			s.engine = l.a
		case "table":
			t := at(l.a)
			t.engine, t.engineFull, t.sortingKey = l.b, l.c, l.d
			t.age, _ = strconv.ParseInt(l.e, 10, 64)
		case "comment":
			at(l.a).comment = l.b
		case "column":
			t := at(l.a)
			t.columns[l.b], t.defaults[l.b] = l.c, l.d
		}
	}
	if s.known["readonly"].value == "1" {
		// Then no setting at all may be changed, whatever system.settings says.
		for name, known := range s.known {
			known.fixed = true
			s.known[name] = known
		}
	}
	return s, nil
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quoteString(n)
	}
	return strings.Join(out, ", ")
}
