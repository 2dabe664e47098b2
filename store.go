package chstate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chstate/chstate/internal/clickhouse"
	"github.com/chstate/chstate/lock"
)

// closeTime bounds Close: each lock frees itself within a lease anyway.
const closeTime = 3 * time.Second

// Store is the state kept in one set of tables. It may be used by many
// goroutines at once.
type Store struct {
	opts   Options
	db     *clickhouse.DB
	locker *lock.Locker
	holder lock.Holder // who we are, for others
	by     string      // the same on one line, for the history

	revisions atomic.Uint64 // rows that holds kept
	unlocked  atomic.Uint64 // writes without a lock, which end what holds keep
}

// Open checks the options and gives the store. It does not connect: the first
// call that needs the server does, and makes missing tables then. The error is
// ErrSettings.
func Open(_ context.Context, o Options) (*Store, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	db, err := clickhouse.Open(o.config())
	if err != nil {
		return nil, &Error{Kind: ErrSettings, Op: "use the settings", Reason: err.Error(), Err: err}
	}
	holder := lock.CurrentHolder(o.Command, o.Version)
	s := &Store{opts: o, db: db, holder: holder, by: fmt.Sprintf("%s@%s", holder.User, holder.Host)}
	if o.Command != "" {
		s.by += ": " + o.Command
	}
	lo := lock.Options{
		Lease: o.Lock.Lease, Retry: o.Lock.Retry, Wait: o.Lock.Wait, Linger: o.Lock.Linger,
		Skew: db.Skew, Holder: holder, Logger: o.Logger, OnWait: s.tellWait,
	}
	if o.Lock.Strategy == "settle" {
		lo.Settle = o.Lock.Settle
	}
	s.locker = lock.New(db.LockLog(), lo)
	return s, nil
}

// Warm connects and looks at the tables, so that the next call need not; it
// makes none. Its error, if any, will come again from that call.
func (s *Store) Warm(ctx context.Context) error {
	return s.wrap(s.db.Warm(ctx), "connect")
}

// Prepare makes the tables that are missing, where Options.CreateTables lets
// it. The first call that writes does so, too; reading makes none.
func (s *Store) Prepare(ctx context.Context) error {
	return s.wrap(s.db.Prepare(ctx), "prepare the tables")
}

// Get reads one state, without a lock: the last one acknowledged. It fails
// with ErrNoState when there is none, be it for want of a table, and with ErrCorrupt when what is stored is not a state.
func (s *Store) Get(ctx context.Context, id string) (State, error) {
	row, err := s.get(ctx, id)
	if err != nil {
		return State{}, err
	}
	st := stateOf(row)
	return st, st.Check()
}

func (s *Store) get(ctx context.Context, id string) (clickhouse.Row, error) {
	if err := checkID(id); err != nil {
		return clickhouse.Row{}, err
	}
	row, found, err := s.db.Get(ctx, id)
	if err != nil {
		return clickhouse.Row{}, s.wrap(err, "read state %q", id)
	}
	if !found {
		return clickhouse.Row{}, &Error{
			Kind: ErrNoState, Reason: fmt.Sprintf("there is no state %q in %s.%s on %s", id, s.opts.Schema, s.opts.Table, s.db.Target()),
			Advice: "`chstate list` shows what there is",
		}
	}
	return row, nil
}

// Set writes both halves without a lock, over whatever is there, as a state
// backend's `set` does in Meltano. Work that holds the id's lock uses Hold.Set.
func (s *Store) Set(ctx context.Context, st State) error {
	row, err := rowOf(st)
	if err != nil {
		return err
	}
	return s.setRows(ctx, "set", []clickhouse.Row{row})
}

// setRows writes rows over what is there, each with a version above it.
func (s *Store) setRows(ctx context.Context, reason string, rows []clickhouse.Row) error {
	defer s.unlocked.Add(1)
	what := fmt.Sprintf("write %d states", len(rows))
	if len(rows) == 1 {
		what = fmt.Sprintf("write state %q", rows[0].ID)
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	now, newest, err := s.before(ctx, reason, ids...)
	if err != nil {
		return s.wrap(err, "%s", what)
	}
	for i := range rows {
		rows[i].UpdatedAt = max(now, newest[rows[i].ID]+1)
	}
	return s.wrap(s.db.Insert(ctx, rows...), "%s", what)
}

// before does what comes before the first write over some states: it copies
// them to the history, and reads their versions and the server's clock. Of many
// states, only those that exist are copied, which is known after the reading.
func (s *Store) before(ctx context.Context, reason string, ids ...string) (now lock.Millis, newest map[string]lock.Millis, err error) {
	if len(ids) > 1 {
		if now, newest, err = s.db.Newest(ctx, ids...); err != nil || len(newest) == 0 {
			return now, newest, err
		}
		return now, newest, s.db.Archive(ctx, reason, s.by, slices.Sorted(maps.Keys(newest))...)
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return s.db.Archive(ctx, reason, s.by, ids...) })
	both.Go(func() error {
		now, newest, err = s.db.Newest(ctx, ids...)
		return err
	})
	err = both.Wait()
	return now, newest, err
}

// IDs yields the state ids that match the glob pattern, in order. Patterns are
// Python's fnmatch.fnmatchcase (* ? [abc] [!abc]); "" matches all.
func (s *Store) IDs(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for id, err := range s.db.IDs(ctx, pattern) {
			if !yield(id, s.wrap(err, "list state ids")) || err != nil {
				return
			}
		}
	}
}

// All yields the states whose ids match the glob pattern, ordered by id, as
// they arrive from the server. They are not checked (State.Check), so that one
// that is not usable does not hide the others.
func (s *Store) All(ctx context.Context, pattern string) iter.Seq2[State, error] {
	return s.states(s.db.Rows(ctx, pattern))
}

// Of yields those of the states that exist, in any order.
func (s *Store) Of(ctx context.Context, ids []string) iter.Seq2[State, error] {
	return s.states(s.db.RowsOf(ctx, ids))
}

func (s *Store) states(rows iter.Seq2[clickhouse.Row, error]) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		for row, err := range rows {
			if !yield(stateOf(row), s.wrap(err, "read states")) || err != nil {
				return
			}
		}
	}
}

// setBatch bounds one batch of SetAll, which is one INSERT.
const setBatch = 5_000

// SetAll reads and checks every state before it writes any, then writes them
// in batches, without locks, as Set does. Of several states with one id the
// last is kept. It gives the number of states read; after an error, some
// batches may have been written, each of them whole.
func (s *Store) SetAll(ctx context.Context, states iter.Seq2[State, error]) (int, error) {
	var (
		rows  []clickhouse.Row
		place = map[string]int{}
		n     int
	)
	for st, err := range states {
		if err != nil {
			return 0, err
		}
		row, err := rowOf(st)
		if err != nil {
			return 0, err
		}
		n++
		if i, ok := place[row.ID]; ok {
			rows[i] = row
			continue
		}
		place[row.ID] = len(rows)
		rows = append(rows, row)
	}
	for total := len(rows); len(rows) > 0; {
		end := clickhouse.Batch(rows, setBatch)
		if err := s.setRows(ctx, "import", rows[:end]); err != nil {
			return 0, err
		}
		rows = rows[end:]
		s.progress(total-len(rows), total)
	}
	return n, nil
}

// ClearAll removes the states that are there now and gives their number; one
// written meanwhile stays. What it removes goes to the history.
func (s *Store) ClearAll(ctx context.Context) (int, error) {
	defer s.unlocked.Add(1)
	n, err := s.db.Clear(ctx, s.by)
	return n, s.wrap(err, "clear all states")
}

// Migrate makes the tables that are missing and replaces a lock table of the
// older Python plugin, whatever Options.CreateTables says; unless that is
// "never", the first call that writes does it as well.
func (s *Store) Migrate(ctx context.Context) error {
	return s.wrap(s.db.Migrate(ctx), "bring the tables up to date")
}

// InitSQL gives the statements that an administrator runs to prepare the
// tables for an account that may not create them, the account's GRANTs included.
func InitSQL(o Options) (string, error) {
	o, err := o.checked()
	if err != nil {
		return "", err
	}
	return clickhouse.InitSQL(o.config())
}

// Close gives every lock back, bounded to 3 s, then closes the connections.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(s.locker.Close(ctx), s.db.Close())
}

// tellWait says who is in the way.
func (s *Store) tellWait(w lock.Wait) {
	busy := lockedError(&lock.BusyError{Wait: w})
	s.opts.Logger.Warn(fmt.Sprintf("waiting for the lock of %s, held by %s since %s", lockName(busy.ID), busy.who(), since(busy.Since, busy.Now)))
}
