// Package chstate keeps Meltano's pipeline state in ClickHouse.
//
// A state is known by its id and has two halves of JSON text: what the last
// finished run left (completed), and the bookmarks that unfinished runs have
// moved since (partial). [Store.Update] writes one under a lock by Meltano's
// rule; [Store.Get], [Store.IDs] and [Store.All] read without one.
//
// The store keeps three tables, made at first use where they are missing:
//
//   - <schema>.<table>: the states, ReplacingMergeTree(updated_at), read with
//     FINAL. The columns are those of the Python plugin
//     meltano-state-backend-clickhouse, and both may use the table.
//   - <table>_lock: the lock's log; package lock tells the protocol.
//   - <table>_history: what was replaced or deleted, for some days.
//
// Where the lock is in Keeper (LockOptions.Strategy) there is a fourth,
// <table>_lock_keeper.
//
// # What is promised
//
// No two processes hold the lock of one id at once, as long as their clocks
// run at the same speed within 10 %. A write made under an older hold never
// shows over one made under a newer hold, however long a process or a request
// was paused. A write that was acknowledged is seen by every later holder; one
// of which that is not known is an error ([ErrLockLost]). A vanished holder
// frees its id a lease later (10 s). Nobody waits longer than the wait limit
// (30 s) without a [*LockedError] that names the holder. Writes without the
// lock ([Store.Set], [Store.SetAll], SQL by hand) are outside of these promises.
//
// # Errors
//
// Every error of the package is an [*Error] or a [*LockedError], but for the end
// of the caller's context and what the caller's own reader or writer said; errors.Is
// tells its kind (ErrNoState, ErrLocked, …). Its text says, on one line, what
// was tried, on which host, what the server said, and what to do next. It
// never has a password or a token in it.
//
// # Compatibility
//
// Before version 1.0 the Go API may change with the minor version; the tables,
// the settings and the tool's exit codes do not.
package chstate
