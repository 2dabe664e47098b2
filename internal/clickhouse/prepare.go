package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// prepare connects, looks, and makes what is missing.
func (db *DB) prepare(ctx context.Context) (*server, error) {
	s, err := db.survey(ctx)
	if err != nil {
		return nil, err
	}
	cells, err := db.createMissingCells(ctx, s) // before the lock table: it stands for the choice
	if err != nil {
		return nil, err
	}
	made, err := db.createMissing(ctx, s)
	if err != nil {
		return nil, err
	}
	migrated, err := db.migrateLock(ctx, s)
	if err != nil {
		return nil, err
	}
	if cells || made || migrated {
		if s, err = db.probe(ctx); err != nil {
			return nil, err
		}
	}
	return s, db.adopt(s)
}

// adopt checks the tables that are there and takes them into use.
func (db *DB) adopt(s *server) error {
	n := db.names
	for _, want := range db.wanted() {
		t := s.tables[want.name]
		if t == nil {
			if want.name == n.history && !db.cfg.CreateTables {
				db.log.Warn("no history is kept: its table is missing and create_tables is never",
					"table", n.plain(n.history), "make it with", "chstate init")
				continue
			}
			return db.missing(want.name)
		}
		if err := db.checkLayout(want.name, t); err != nil {
			return err
		}
		if want.name == n.history {
			s.history = true
		}
	}
	s.state = s.tables[n.state]
	return db.adoptCells(s)
}

// checkLayout says what is wrong with a table of ours.
func (db *DB) checkLayout(name string, t *table) error {
	n := db.names
	for _, want := range db.wanted() {
		if want.name != name {
			continue
		}
		if wrong := want.layout.check(t); len(wrong) > 0 {
			return &Error{
				Kind:   Schema,
				Target: db.Target(),
				Reason: fmt.Sprintf("the table %s is not what it must be: %s", n.plain(name), strings.Join(wrong, "; ")),
				Advice: fmt.Sprintf("name another table or schema, or RENAME that one and let it be made anew (`SHOW CREATE TABLE %s` shows it)", n.qualified(name)),
			}
		}
	}
	return nil
}

type wanted struct {
	name   string
	layout layout
}

// wanted are the tables that this configuration uses.
func (c Config) wanted() []wanted {
	n := c.names()
	w := []wanted{{n.state, stateLayout}, {n.lock, lockLayout}}
	if c.HistoryDays > 0 {
		w = append(w, wanted{n.history, historyLayout(c.HistoryDays)})
	}
	return w
}

func (db *DB) wanted() []wanted { return db.cfg.wanted() }

func (db *DB) missing(name string) *Error {
	e := &Error{
		Kind:   Schema,
		Target: db.Target(),
		Reason: fmt.Sprintf("the table %s does not exist, or user %q may not see it", db.names.plain(name), db.cfg.User),
		Advice: "let an administrator run what `chstate init --print-sql` prints",
	}
	if !db.cfg.CreateTables {
		e.Advice += ", or set create_tables=auto"
	}
	return e
}

// oldest is the first version that everything here works with.
var oldest = [2]int{23, 8}

func (db *DB) checkVersion(version string) error {
	var got [2]int
	for i, part := range strings.SplitN(version, ".", 3) {
		if i < len(got) {
			got[i], _ = strconv.Atoi(part)
		}
	}
	if got[0] > oldest[0] || (got[0] == oldest[0] && got[1] >= oldest[1]) {
		return nil
	}
	return &Error{
		Kind:   Version,
		Target: db.Target(),
		Reason: fmt.Sprintf("the server is ClickHouse %s; %d.%d or newer is needed", version, oldest[0], oldest[1]),
		Advice: "upgrade the server",
	}
}

// createMissing makes the schema and the tables that are missing, and nothing
// else: where all are there, no DDL is sent, so SELECT and INSERT are enough.
func (db *DB) createMissing(ctx context.Context, s *server) (made bool, err error) {
	if !db.cfg.CreateTables {
		return false, nil
	}
	n := db.names
	var ddl []string
	if make := db.createSchema(s); make != "" {
		ddl = append(ddl, make)
	}
	engine := db.cfg.engine(s.engine, s.cloud())
	for _, want := range db.wanted() {
		if s.tables[want.name] == nil {
			ddl = append(ddl, want.layout.create(n, want.name, engine, s.mergeSet, true))
		}
	}
	for _, statementText := range ddl {
		if err := db.execute(ctx, s, forDDL, statement{text: statementText}); err != nil {
			return false, db.refusedDDL(err)
		}
	}
	return len(ddl) > 0, nil
}

// createSchema gives the statement that makes the schema, empty where it is there.
func (db *DB) createSchema(s *server) string {
	if s.engine != "" {
		return ""
	}
	return "CREATE DATABASE IF NOT EXISTS " + quoteIdent(db.names.schema) + db.names.cluster
}

// refusedDDL adds to a refusal what an administrator would do about it.
func (db *DB) refusedDDL(err error) error {
	e := explained(err)
	if e == nil {
		return err
	}
	switch e.Kind {
	case Denied:
		e.Reason = "the tables are missing and user " + strconv.Quote(db.cfg.User) + " may not make them: " + e.Reason
	case ReadOnly:
		e.Reason = "the tables are missing and cannot be made: " + e.Reason
	case Server:
		e.Reason = "the tables are missing and cannot be made: " + e.Reason
		e.Advice = "let an administrator run what `chstate init --print-sql` prints"
	}
	return e
}
