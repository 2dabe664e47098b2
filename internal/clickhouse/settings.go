package clickhouse

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// purpose is what a statement is for; it decides which settings go with it.
type purpose int

const (
	forProbe  purpose = iota // before anything is known of the server: none
	forRead                  // SELECT
	forStream                // SELECT of many rows with their state text
	forLook                  // SELECT of one key of the lock's rows
	forInsert                // INSERT of states
	forClaim                 // INSERT of one of the lock's rows
	forDelete                // lightweight DELETE
	forCount                 // SELECT of how many rows a DELETE has to remove
	forSwap                  // compare and set in Keeper
	forDDL                   // CREATE and the like
)

// reads says whether a statement changes nothing.
func (p purpose) reads() bool { return p == forRead || p == forStream || p == forLook || p == forCount }

// knownSettings are all that are ever sent; the probe asks which exist.
var knownSettings = []string{
	"async_insert", "wait_for_async_insert",
	"deduplicate_insert", "deduplicate_insert_select", "insert_deduplicate", "insert_deduplication_token",
	"do_not_merge_across_partitions_select_final", "max_block_size", "max_threads", "use_query_cache",
	"insert_quorum", "insert_quorum_parallel", "select_sequential_consistency",
	"lightweight_delete_mode", "lightweight_deletes_sync", "mutations_sync",
	"keeper_map_strict_mode", "insert_keeper_max_retries",
	"readonly", "cloud_mode", "max_query_size",
}

// longStatement is the longest statement of ours, with the lists of ids that it
// is to delete.
const longStatement = 768 << 10

// streamBlock is how many rows a block of a streamed read has at most: a block
// is decoded as a whole, and states may be large.
const streamBlock = "256"

// settings gives what to send with a statement. Only what the server has, and
// lets this user change, is sent; what already is as it must be is not sent
// to an account that may not change it.
func (s *server) settings(p purpose, cfg Config, left *leftOut) clickhouse.Settings {
	if s == nil || p == forProbe || p == forDDL {
		return nil
	}
	out := clickhouse.Settings{}
	set := func(name, value string) bool {
		known, ok := s.known[name]
		if !ok || left.has(name) {
			return false
		}
		if known.fixed && (known.value == value || p.reads()) {
			return true
		}
		out[name] = value
		return true
	}
	// A read through FINAL must merge across partitions, whatever a profile
	// says, and see every row that was acknowledged.
	set("do_not_merge_across_partitions_select_final", "0")
	if s.known["use_query_cache"].value == "1" {
		set("use_query_cache", "0")
	}
	if s.replicated() || s.unseen() {
		set("select_sequential_consistency", "1")
	}
	if p == forLook || p == forClaim {
		// A few rows of one key have nothing to share among threads. With many
		// processes at once, starting those is a third of the server's work.
		set("max_threads", "1")
	}
	switch p {
	case forStream:
		set("max_block_size", streamBlock)
	case forInsert, forClaim:
		if cfg.AsyncInsert {
			set("async_insert", "1")
			set("wait_for_async_insert", "1")
		} else {
			set("async_insert", "0")
		}
		// Two equal inserts are two writes here: one may restore what the
		// other had replaced.
		if !set("deduplicate_insert", "disable") {
			set("insert_deduplicate", "0")
			set("insert_deduplication_token", token())
		}
		set("deduplicate_insert_select", "disable")
		if s.replicated() && !s.shared() {
			set("insert_quorum", "auto")
			set("insert_quorum_parallel", "0")
		}
	case forSwap:
		set("keeper_map_strict_mode", "1")
		set("insert_keeper_max_retries", "0") // a repetition must read first
		set("async_insert", "0")
	case forCount:
		set("max_query_size", strconv.Itoa(longStatement))
	case forDelete:
		set("max_query_size", strconv.Itoa(longStatement))
		// A mutation, never a patch: where both meet in one table, as when the
		// older plugin or an administrator deletes too, rows come back.
		set("lightweight_delete_mode", "alter_update")
		set("lightweight_deletes_sync", "2")
		set("mutations_sync", "2")
	}
	return out
}

// token makes an insert's deduplication token one that no other insert has.
func token() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// leftOut remembers settings that the server refused with a read.
type leftOut struct {
	mu    sync.Mutex
	names map[string]bool
}

func (l *leftOut) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[name]
}

// refused leaves out the settings that the server's message names, all of them
// when it names none; it says whether there was anything to leave out.
func (l *leftOut) refused(message string, sent clickhouse.Settings) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[string]bool{}
	}
	named := false
	for name := range sent {
		if strings.Contains(message, name) {
			l.names[name], named = true, true
		}
	}
	if named {
		return true
	}
	for name := range sent {
		l.names[name], named = true, true
	}
	return named
}
