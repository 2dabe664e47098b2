// Package clickhouse keeps states, their history and the lock's log in
// ClickHouse tables, over clickhouse-go's own connection API.
//
// It knows the statements, the tables' layout, the server's error codes, and
// which failures pass by themselves. It knows nothing of locking rules, of
// merging states, of flags or files.
//
// Every write is safe to repeat: a state row carries its version, a row of the
// lock's log its claim and sequence number. So a request whose answer was lost
// is sent again, the same bytes.
package clickhouse
