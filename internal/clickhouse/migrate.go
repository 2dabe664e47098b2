package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// The older Python plugin keeps its lock in a table of its own layout: one row
// an id, sorted by state_id alone, so that a merge may drop a live claim. It is
// replaced once, while both kinds of process run:
//
//  1. CREATE TABLE <lock>__new without IF NOT EXISTS: who makes it may migrate,
//     the others wait.
//  2. The old layout is checked again, the rows of live claims are copied, then
//     the two tables change their names. From here on, the older plugin writes
//     to the new table without knowing.
//  3. What came into the old table, whose name is <lock>__new now, or went from
//     it, since the copy, comes into the new one or goes; and the old one is dropped.
//
// Only one process does all this, the others wait: a second copy would bring
// back claims that were released meanwhile.
//
// A migrator that died leaves <lock>__new behind: with the new layout when it
// died before step 2, with the old one after it. Either is recognised, by
// layout and age, and taken over.

// sharedMark begins the comment of a lock table that replaced the older
// plugin's. Some process with that plugin may still come, now or next week, and
// would stand still before every claim that is over. So they are deleted on
// such a table, until somebody takes the comment away.
const sharedMark = "shared with the older plugin"

// shared says whether the table is known to be the older plugin's as well.
func (t *table) shared() bool { return t != nil && strings.HasPrefix(t.comment, sharedMark) }

// abandoned is the age from which a migration counts as one that died. (Tests
// shorten it.)
var abandoned = time.Minute

// maxPasses bounds how often the swapped-out table is looked at again.
const maxPasses = 40

// migrationLimit bounds the wait for another process's migration.
const migrationLimit = 2 * time.Minute

// oldLockLayout recognises the older plugin's lock table.
func oldLockLayout(t *table) bool {
	if t == nil || t.sortingKey != "state_id" || t.columns["seq"] != "" {
		return false
	}
	return t.columns["state_id"] != "" && t.columns["lock_id"] != "" && t.columns["locked_at"] != ""
}

// Migrate brings older tables up to date: it replaces a lock table in the
// older plugin's layout. Prepare does that too, where creating tables is allowed;
// Migrate does it whatever CreateTables says.
func (db *DB) Migrate(ctx context.Context) error {
	s, err := db.survey(ctx)
	if err != nil {
		return err
	}
	if _, err := db.replaceLock(ctx, s); err != nil {
		return err
	}
	return db.Prepare(ctx)
}

// migrateLock is Migrate as a part of Prepare.
func (db *DB) migrateLock(ctx context.Context, s *server) (changed bool, err error) {
	old := oldLockLayout(s.tables[db.names.lock])
	if old && !db.cfg.CreateTables {
		return false, &Error{
			Kind:   Schema,
			Target: db.Target(),
			Reason: fmt.Sprintf("the table %s is the older plugin's, in which claims can get lost, and create_tables is never", db.names.plain(db.names.lock)),
			Advice: "let a user who may CREATE and DROP tables run `chstate init`",
		}
	}
	if !old && !db.halfMigrated(s) {
		return false, nil
	}
	return db.replaceLock(ctx, s)
}

// halfMigrated says that a migration is under way, or was left by one who died,
// and is ours to see through.
func (db *DB) halfMigrated(s *server) bool {
	return db.cfg.CreateTables && (db.leftover(s) != nil || db.unused(s))
}

// unused says that a migrator died before it swapped the table that it had made.
func (db *DB) unused(s *server) bool {
	t := s.tables[db.names.replacement()]
	return t != nil && !oldLockLayout(t) && t.old()
}

// old says that the table was made so long ago that its maker must have died,
// if that has not ended what it was about.
func (t *table) old() bool { return t != nil && time.Duration(t.age)*time.Second > abandoned }

// leftover is the swapped-out table of a migration that is not finished.
func (db *DB) leftover(s *server) *table {
	for _, name := range []string{db.names.replacement(), db.names.replaced()} {
		if t := s.tables[name]; oldLockLayout(t) {
			return t
		}
	}
	return nil
}

// replaceLock migrates, or waits until somebody else has; changed says that the
// tables are not those of s any more.
func (db *DB) replaceLock(ctx context.Context, s *server) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, migrationLimit)
	defer cancel()
	var (
		told, mine bool               // mine: this process has swapped the tables
		copied     map[candidate]bool // by this process
	)
	for {
		lockTable, waiting := s.tables[db.names.lock], s.tables[db.names.replacement()]
		switch left := db.leftover(s); {
		case !oldLockLayout(lockTable) && left == nil:
			if db.unused(s) {
				return changed, db.tidy(db.discard(ctx, s, waiting.name), waiting.name)
			}
			return changed, nil
		case !oldLockLayout(lockTable) && (mine || lockTable.old()):
			return true, db.finishMigration(ctx, s, left.name, copied)
		case !oldLockLayout(lockTable):
			// Swapped, and maybe not copied yet: using the lock now would be wrong.
			if err := db.pause(ctx, 100*time.Millisecond); err != nil {
				return false, err
			}
		case waiting == nil:
			if !told {
				db.log.Info("replacing the older plugin's lock table", "table", db.names.plain(db.names.lock), "server", db.Target())
				told = true
			}
			var err error
			mine, copied, err = db.swapLock(ctx, s)
			if err != nil && !alreadyThere(err) && !gone(err) { // else somebody else is at it
				return false, db.refusedMigration(err)
			}
		case db.unused(s):
			if err := db.discard(ctx, s, waiting.name); err != nil {
				return false, db.refusedMigration(err)
			}
		default:
			if err := db.pause(ctx, 200*time.Millisecond); err != nil {
				return false, err
			}
		}
		changed = true
		if s, err = db.probe(ctx); err != nil {
			return false, err
		}
	}
}

// swapLock makes the new table, fills it, and gives it the old one's name. It
// says whether it did, and which rows it had copied before.
func (db *DB) swapLock(ctx context.Context, s *server) (swapped bool, copied map[candidate]bool, err error) {
	n := db.names
	engine := db.cfg.engine(s.engine, s.cloud())
	text := lockLayout.create(n, n.replacement(), engine, s.mergeSet, false) + "\nCOMMENT " + quoteString(sharedMark)
	if err := db.execute(ctx, s, forDDL, statement{text: text}); err != nil {
		return false, nil, err
	}
	now, err := db.probe(ctx)
	if err != nil {
		return false, nil, err
	}
	if !oldLockLayout(now.tables[n.lock]) {
		// Somebody was faster; what was just made is not needed.
		return false, nil, db.discard(ctx, s, n.replacement())
	}
	for range 2 { // the second time there is little left to copy, and so little time until the swap
		if copied, err = db.follow(ctx, now, n.lock, n.replacement(), copied); err != nil {
			return false, nil, err
		}
	}
	swappedOut := n.replacement()
	text = "EXCHANGE TABLES " + n.Lock() + " AND " + n.qualified(n.replacement()) + n.cluster
	if s.engine != "Atomic" && s.engine != "Replicated" && s.engine != "Shared" {
		swappedOut = n.replaced()
		text = "RENAME TABLE " + n.Lock() + " TO " + n.qualified(swappedOut) + ", " +
			n.qualified(n.replacement()) + " TO " + n.Lock() + n.cluster
	}
	if err = db.execute(ctx, s, forDDL, statement{text: text}); err != nil {
		return false, nil, err
	}
	// At once: a process of the older plugin whose row is not there when it
	// looks, a second after it was stored, will not delete it in the new table.
	copied, err = db.follow(ctx, s, swappedOut, n.lock, copied)
	return true, copied, err
}

// finishMigration brings the new table in line with the swapped-out one, of
// which copied is there already, and drops the latter.
func (db *DB) finishMigration(ctx context.Context, s *server, name string, copied map[candidate]bool) error {
	n := db.names
	// What the older plugin had on its way when the tables were swapped still
	// lands in the old one: look again after a moment, and as long as DELETEs
	// are at work.
	for pass, busy := 0, true; pass < 2 || busy && pass < maxPasses; pass++ {
		if pass > 0 {
			if err := db.pause(ctx, 250*time.Millisecond); err != nil {
				return err
			}
		}
		busy = db.mutating(ctx, s, name)
		var err error
		if copied, err = db.follow(ctx, s, name, n.lock, copied); err != nil {
			if gone(err) {
				return nil // somebody else has finished it
			}
			return db.refusedMigration(err)
		}
	}
	now, err := db.probe(ctx)
	if err != nil {
		return err
	}
	if !oldLockLayout(now.tables[name]) || oldLockLayout(now.tables[n.lock]) {
		return nil
	}
	return db.tidy(db.drop(ctx, s, name), name)
}

// tidy takes a table that cannot be dropped for no failure: its rows are
// copied, and who may drop it will.
func (db *DB) tidy(err error, name string) error {
	if e := explained(err); e != nil && (e.Kind == Denied || e.Kind == ReadOnly) {
		db.log.Warn("a table that is no longer needed cannot be dropped", "table", db.names.plain(name), "because", e.Reason)
		return nil
	}
	return err
}

// discard takes away a table of the new layout that a migration has made and
// not used. It is renamed first: a migrator that was only slow then fails to
// swap it, rather than swapping twice.
func (db *DB) discard(ctx context.Context, s *server, name string) error {
	n := db.names
	aside := n.lock + "__" + token()[:8]
	text := "RENAME TABLE " + n.qualified(name) + " TO " + n.qualified(aside) + n.cluster
	if err := db.execute(ctx, s, forDDL, statement{text: text}); err != nil {
		if gone(err) {
			return nil
		}
		return err
	}
	var v values
	text = "SELECT count() FROM system.columns WHERE database = " + v.text(n.schema) + " AND table = " + v.text(aside) + " AND name = 'seq'"
	fresh, err := collect(ctx, db, s, forProbe, statement{text: text, args: v}, func(rows driver.Rows) (c uint64, err error) {
		err = rows.Scan(&c)
		return c, err
	})
	if err != nil {
		return err
	}
	if fresh[0] == 0 {
		// The slow migrator has swapped in between: this is the old table, and
		// has rows to be copied. Put it back under the name where it is found.
		text = "RENAME TABLE " + n.qualified(aside) + " TO " + n.qualified(name) + n.cluster
		return db.execute(ctx, s, forDDL, statement{text: text})
	}
	return db.drop(ctx, s, aside)
}

func (db *DB) drop(ctx context.Context, s *server, name string) error {
	err := db.execute(ctx, s, forDDL, statement{text: "DROP TABLE IF EXISTS " + db.names.qualified(name) + db.names.cluster})
	if gone(err) {
		return nil
	}
	return err
}

func (db *DB) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return db.interrupted(ctx)
	}
}

func (db *DB) refusedMigration(err error) error {
	if e := explained(err); e != nil && (e.Kind == Denied || e.Kind == ReadOnly || e.Kind == Server) {
		e.Reason = fmt.Sprintf("the older plugin's lock table %s cannot be replaced: %s", db.names.plain(db.names.lock), e.Reason)
	}
	return err
}

func alreadyThere(err error) bool { return hasCode(err, codeTableExists) }

// gone says that the table was there a moment ago.
func gone(err error) bool { return hasCode(err, codeUnknownTable) || hasCode(err, codeTableDropped) }

func hasCode(err error, code int) bool {
	e := explained(err)
	return e != nil && e.Code == code
}
