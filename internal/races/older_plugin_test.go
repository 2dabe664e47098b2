//go:build unix

package races

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chstate/chstate/internal/chtest"
)

// older is a process of the older Python plugin (0.1.0, as of its commit
// f6ec0ce), statement by statement: while FINAL shows a row of the id it waits,
// and deletes stale rows; then it inserts a candidate, sleeps, and has the lock
// if its id is the lowest of all rows, read without FINAL.
type older struct {
	server chtest.Server
	schema string
}

const (
	// LOCK_TIMEOUT_SECONDS is 30, of sleep. This may be a busy machine, on which
	// a DELETE takes seconds: that it gets its turn within the 30 is tested in
	// package lock, in a time of its own.
	lockTimeout = 2 * time.Minute
	lockRetry   = time.Second       // retry_seconds, as Meltano has it
	staleLock   = 300 * time.Second // STALE_LOCK_SECONDS
	lockSettle  = time.Second       // LOCK_SETTLE_SECONDS
)

func (w *older) close() error { return nil }

func (w *older) sql(format string, a ...any) (string, error) {
	return w.server.Do(strings.ReplaceAll(fmt.Sprintf(format, a...), "@", "`"+w.schema+"`."))
}

// olderTables are the statements of its _ensure_tables.
var olderTables = []string{
	"CREATE TABLE IF NOT EXISTS @state (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3))" +
		" ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id",
	"CREATE TABLE IF NOT EXISTS @state_lock (state_id String, lock_id String, locked_at DateTime DEFAULT now())" +
		" ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id TTL locked_at + INTERVAL 300 SECOND",
}

func (w *older) do(_ context.Context, o order) (int, error) {
	if o.Do != "warm" {
		return 0, fmt.Errorf("unknown order %q", o.Do)
	}
	if _, err := w.server.Do("CREATE DATABASE IF NOT EXISTS `" + w.schema + "`"); err != nil {
		return 0, err
	}
	for _, statement := range olderTables {
		if _, err := w.sql("%s", statement); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func (w *older) add(_ context.Context, id string) (n int, err error) {
	lockID, err := w.acquire(id)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err2 := w.remove(id, lockID); err == nil {
			err = err2
		}
	}()
	text, err := w.sql("SELECT completed_state FROM @state FINAL WHERE state_id = '%s' FORMAT TSVRaw", id)
	if err != nil {
		return 0, err
	}
	var c counter
	if text != "" {
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return 0, err
		}
	}
	n = c.N + 1
	_, err = w.sql(`INSERT INTO @state (state_id, partial_state, completed_state) VALUES ('%s', NULL, '{"n": %d}')`, id, n)
	return n, err
}

func (w *older) acquire(id string) (string, error) {
	mine := uuid.NewString()
	for slept := time.Duration(0); slept < lockTimeout; slept += lockRetry {
		holder, err := w.holder(id)
		if err == nil && holder != "" {
			if _, err = w.sql("DELETE FROM @state_lock WHERE locked_at < now() - %d", int(staleLock.Seconds())); err == nil {
				holder, err = w.holder(id)
			}
		}
		if err != nil {
			return "", err
		}
		if holder != "" {
			time.Sleep(lockRetry)
			continue
		}
		if _, err := w.sql("INSERT INTO @state_lock (state_id, lock_id) VALUES ('%s', '%s')", id, mine); err != nil {
			return "", err
		}
		time.Sleep(lockSettle)
		all, err := w.sql("SELECT lock_id FROM @state_lock WHERE state_id = '%s'", id)
		if err != nil {
			return "", err
		}
		if slices.Min(strings.Split(all, "\n")) == mine {
			return mine, nil
		}
		if err := w.remove(id, mine); err != nil {
			return "", err
		}
		time.Sleep(lockRetry)
		slept += lockSettle
	}
	return "", fmt.Errorf("the older plugin could not acquire the lock of %s within %s", id, lockTimeout)
}

// holder is _lock_held_by.
func (w *older) holder(id string) (string, error) {
	return w.sql("SELECT lock_id FROM @state_lock FINAL WHERE state_id = '%s' ORDER BY lock_id LIMIT 1", id)
}

func (w *older) remove(id, lockID string) error {
	_, err := w.sql("DELETE FROM @state_lock WHERE state_id = '%s' AND lock_id = '%s'", id, lockID)
	return err
}
