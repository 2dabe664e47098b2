package chstate

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/chstate/chstate/internal/clickhouse"
	"github.com/chstate/chstate/lock"
)

// Version is a state as it was, or is.
type Version struct {
	State // UpdatedAt is the version: when it was written, by the server's clock

	// Current: it is the one that shows. The other fields are zero then.
	Current bool
	// ReplacedAt, ReplacedBy and Reason tell how it ended: update, set, delete,
	// clear_all, import or rollback, by "user@host: command".
	ReplacedAt time.Time
	ReplacedBy string
	Reason     string
}

// History yields the versions of a state that are known, newest first, the
// current one included; none when the id is unknown. The history has the
// state before each run or command that changed it, not each bookmark within a
// run, for Options.HistoryDays.
func (s *Store) History(ctx context.Context, id string) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		row, found, err := s.current(ctx, id)
		if err != nil {
			yield(Version{}, err)
			return
		}
		if found && !yield(Version{State: stateOf(row), Current: true}, nil) {
			return
		}
		for old, err := range s.db.Archived(ctx, id) {
			if err == nil && found && old.UpdatedAt == row.UpdatedAt {
				continue // archived by a write that then failed
			}
			v := Version{State: stateOf(old.Row), ReplacedAt: old.At.Time(), ReplacedBy: old.By, Reason: old.Reason}
			if !yield(v, s.wrap(err, "read the history of state %q", id)) || err != nil {
				return
			}
		}
	}
}

func (s *Store) current(ctx context.Context, id string) (clickhouse.Row, bool, error) {
	row, err := s.get(ctx, id)
	if isNoState(err) {
		return row, false, nil
	}
	return row, err == nil, err
}

// versionLayout writes a version, which is a moment in milliseconds.
const versionLayout = "2006-01-02T15:04:05.000Z07:00"

// VersionAt gives the version of a state that was current at a moment: the
// newest that was written then or before. ErrNoState when none is known.
func (s *Store) VersionAt(ctx context.Context, id string, at time.Time) (Version, error) {
	for v, err := range s.History(ctx, id) {
		if err != nil {
			return Version{}, err
		}
		if version(v.UpdatedAt) <= version(at) {
			return v, nil
		}
	}
	return Version{}, &Error{
		Kind: ErrNoState, Reason: fmt.Sprintf("no version of state %q from %s or before is known", id, at.UTC().Format(versionLayout)),
		Advice: "`" + commandOn("chstate history", id) + "` lists those that are",
	}
}

// Rollback writes the version of a state that was current at a moment as a new
// version, under the lock, and gives the one it took. What it replaces goes to the history.
func (s *Store) Rollback(ctx context.Context, id string, to time.Time) (Version, error) {
	var taken Version
	err := s.locked(ctx, id, func(h *Hold) (err error) {
		if taken, err = s.VersionAt(ctx, id, to); err != nil || taken.Current {
			return err
		}
		return h.set(ctx, "rollback", taken.State)
	})
	return taken, err
}

// PruneHistory forgets versions that were replaced before a moment and gives their number.
func (s *Store) PruneHistory(ctx context.Context, before time.Time) (int, error) {
	n, err := s.db.Prune(ctx, lock.Millis(before.UnixMilli()))
	return n, s.wrap(err, "prune the history")
}
