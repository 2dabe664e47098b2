package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// link is a connection and what was set on it. What a request's URL sets is for
// that request; instead of taking it back at once, the next request changes only
// what it wants otherwise, and that is mostly nothing.
type link struct {
	conn *chdb.Conn

	set  map[string]string // by SET statements, as literals; only in sessions
	home string            // the database by USE, as written; only in sessions

	applied []setting // by the last request's URL
	away    string    // the database that the last request named, or ""
}

func newLink(conn *chdb.Conn) *link {
	return &link{conn: conn, set: map[string]string{}, home: "default"}
}

// configure makes the connection's settings and database those that q asks for.
func (l *link) configure(q *request) error {
	var assignments []string
	for _, old := range l.applied {
		if !slices.ContainsFunc(q.settings, func(s setting) bool { return s.name == old.name }) {
			value, ok := l.set[old.name]
			if !ok {
				value = "DEFAULT"
			}
			assignments = append(assignments, old.name+" = "+value)
		}
	}
	for _, s := range q.settings {
		if !slices.Contains(l.applied, s) {
			assignments = append(assignments, s.name+" = "+quote(s.value))
		}
	}
	if len(assignments) > 0 {
		before := l.applied
		// If this fails halfway, both are to be taken back.
		l.applied = slices.Concat(before, q.settings)
		if err := l.conn.Exec("SET " + strings.Join(assignments, ", ")); err != nil {
			return err
		}
	}
	l.applied = q.settings
	return l.use(q.database)
}

// use goes to a request's database, "" being the connection's own. A named one is
// asked for each time, for it may have been dropped since.
func (l *link) use(database string) error {
	if database == "default" && l.home == "default" {
		database = ""
	}
	if database == "" && l.away == "" {
		return nil
	}
	name := l.home
	if database != "" {
		name = quoteName(database)
	}
	if err := l.conn.Exec("USE " + name); err != nil {
		return err
	}
	l.away = database
	return nil
}

// lasting are the settings that cannot be taken back, or not by setting them to
// their defaults: they change what may be set, or other settings.
var lasting = []string{
	"readonly", "allow_ddl", "profile", "compatibility",
	"implicit_select", "allow_introspection_functions", "storage_file_read_method", "input_format_parallel_parsing",
}

// reusable tells whether another request may have the connection after q.
func (q *request) reusable() bool {
	return !q.readOnly && !slices.ContainsFunc(q.settings, func(s setting) bool { return slices.Contains(lasting, s.name) })
}

// createTemporary makes a table that only this connection sees.
func (l *link) createTemporary(name, structure string) error {
	return l.conn.Exec(fmt.Sprintf("CREATE TEMPORARY TABLE %s (%s) ENGINE = Memory", quoteName(name), structure))
}
