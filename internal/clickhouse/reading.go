package clickhouse

import (
	"context"
	"fmt"
	"time"
)

// A read does not wait for the look at the server that a write needs (some
// 20 ms of system tables): it is sent at once, with settings that every server
// knows. When it fails, the server is looked at, and the read is repeated or
// its failure explained by what was found. No read makes a table.

// assume gives what is taken for granted of a server that was not looked at.
// answered is called with its first answer.
func assume(answered func()) *server {
	return &server{
		answered: answered,
		known: map[string]setting{
			"do_not_merge_across_partitions_select_final": {},
			"max_block_size":                {},
			"select_sequential_consistency": {},
			"use_query_cache":               {value: "1"}, // for all that is known
		},
	}
}

// unseen says that nothing is known of the server yet.
func (s *server) unseen() bool { return s != nil && s.answered != nil }

// firstAnswer is called when a statement was answered, before its rows are
// used. Of a server that was not looked at it sees that it is not too old; the
// connection knows its version, so nothing is asked for that.
func (db *DB) firstAnswer(s *server) error {
	if !s.unseen() {
		return nil
	}
	s.answered()
	v, err := db.conn.ServerVersion()
	if err != nil {
		return err
	}
	return db.checkVersion(v.Version.String())
}

// read runs a read of a table with what is known of the server. Where the
// table is missing, it reads nothing.
func (db *DB) read(ctx context.Context, table string, do func(context.Context, *server) error) error {
	if s := db.server.Load(); s != nil {
		return do(ctx, s)
	}
	notice := db.noticeSlowStart()
	defer notice.Stop()
	err := do(ctx, assume(func() { notice.Stop() }))
	e := explained(err)
	if e == nil || e.Code == 0 || e.Kind == Login || e.Kind == Busy {
		return err
	}
	notice.Stop()
	s, lookErr := db.survey(ctx)
	if lookErr != nil {
		if e := explained(lookErr); e != nil && e.Kind == Version {
			return lookErr
		}
		return err
	}
	switch t := s.tables[table]; {
	case t != nil:
		s.state = s.tables[db.names.state]
		if err := db.checkLayout(table, t); err != nil {
			return err
		}
		return do(ctx, s)
	case table != db.names.state:
		return nil // it is made together with that one
	case !db.cfg.CreateTables:
		return db.missing(table)
	case e.Code != codeUnknownTable && e.Code != codeUnknownDatabase:
		return err // it may be there, only not for this user to see
	}
	if db.toldMissing.CompareAndSwap(false, true) {
		db.log.Info(fmt.Sprintf("there is no table %s yet on %s, so there are no states; the first write makes it. If there should be states, check schema and table",
			db.names.plain(table), db.Target()))
	}
	return nil
}

// survey looks at the server.
func (db *DB) survey(ctx context.Context) (*server, error) {
	defer db.noticeSlowStart().Stop()
	s, err := db.probe(ctx)
	if err != nil {
		return nil, err
	}
	return s, db.checkVersion(s.version)
}

// noticeSlowStart tells people when the first answer is long in coming, unless
// the timer is stopped before. That need not mean that anything is wrong: an
// idle cloud service is started by the first request.
func (db *DB) noticeSlowStart() *time.Timer {
	return time.AfterFunc(noticeAfter, func() {
		if db.mayTell() {
			db.log.Warn("waiting for ClickHouse to answer (a service that was idle takes up to a minute to start)", "server", db.Target())
		}
	})
}
