package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/chstate/chstate/lock"
	"github.com/chstate/chstate/lock/locktest"
)

// key is the one key that everything is about.
const key = "key"

// server is the database: the lock's log, and the table of states, of which it
// has one. Every method is one statement, executed at once.
type server struct {
	w    *world
	rng  *rand.Rand
	rate float64

	mu      sync.Mutex
	log     *locktest.Memory
	rows    []stateRow // of the state, in the order of their arrival
	gone    lock.Millis
	history []lock.Millis // versions of the rows that were copied there
	jump    time.Duration
	clocks  []time.Duration // offsets of the replicas' clocks
	serving int             // the replica that executes a statement
	looks   int             // numbers the reads of the log
	past    []past          // what lagging replicas may still show
}

// stateRow is one row of the table of states.
type stateRow struct {
	version lock.Millis
	write   *write // nil for one written without the lock
}

// past is what the tables had at a moment.
type past struct {
	at   time.Duration
	log  []lock.Row
	rows []stateRow
	gone lock.Millis
}

func newServer(w *world) *server {
	rng := w.rand("server")
	s := &server{w: w, rng: rng, rate: rate(rng), clocks: []time.Duration{0}}
	if w.climate.replicas == quorum {
		for range 2 {
			s.clocks = append(s.clocks, time.Duration(rng.Int64N(int64(maxSkew))))
		}
	}
	s.log = locktest.NewMemory(s.now)
	return s
}

// now is the clock of the replica that serves.
func (s *server) now() lock.Millis {
	const epoch = 1_700_000_000_000
	t := time.Duration(float64(s.w.now()) * s.rate)
	return lock.Millis(epoch).Add(t + s.jump + s.clocks[s.serving])
}

// statement executes one statement on some replica.
func (s *server) statement(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = s.rng.IntN(len(s.clocks))
	do()
}

// changed keeps what was, for lagging replicas.
func (s *server) changed() {
	if s.w.climate.replicas != lagging {
		return
	}
	now := s.w.now()
	i := 0
	for i+1 < len(s.past) && s.past[i+1].at <= now-maxLag {
		i++
	}
	s.past = append(s.past[i:], past{at: now, log: s.log.Rows(key), rows: slices.Clone(s.rows), gone: s.gone})
}

// shown is what the replica that serves a read shows.
func (s *server) shown() (p past) {
	if s.w.climate.replicas != lagging {
		return past{rows: s.rows, gone: s.gone}
	}
	until := s.w.now() - time.Duration(s.rng.Int64N(int64(maxLag)))
	for _, p2 := range s.past {
		if p2.at <= until {
			p = p2
		}
	}
	return p
}

// append executes an Append of the log.
func (s *server) append(rec lock.Record) {
	s.statement(func() {
		_ = s.log.Append(context.Background(), key, rec)
		s.w.books.stored(rec)
		s.w.trace("  stored: claim %s seq %d%s, ceiling %d", short(rec.ClaimID), rec.Seq, kind(rec), rec.Ceiling)
		s.changed()
	})
}

// look executes a Read of the log, and numbers it.
func (s *server) look() (snap lock.Snapshot) {
	s.statement(func() {
		snap, _ = s.log.Read(context.Background(), key)
		if s.w.climate.replicas == lagging {
			snap.Rows = slices.Clone(s.shown().log)
		}
		s.looks++
		s.w.books.looked(snap, s.looks)
	})
	return snap
}

// top is the row that FINAL shows: the greatest version, of equal ones the last.
func top(rows []stateRow) (best stateRow) {
	for _, row := range rows {
		if row.version >= best.version {
			best = row
		}
	}
	return best
}

// seen is what a read of the state saw.
type seen struct {
	version lock.Millis // of the row; 0 when there is none
	reaches lock.Millis // every write up to here is in it, deletes included
	now     lock.Millis
}

// read executes SELECT … FINAL.
func (s *server) read() (r seen) {
	s.statement(func() {
		p := s.shown()
		v := top(p.rows).version
		r = seen{version: v, reaches: max(v, p.gone), now: s.now()}
	})
	return r
}

// archive executes INSERT INTO history SELECT … FINAL.
func (s *server) archive() {
	s.statement(func() {
		if v := top(s.shown().rows).version; v != 0 {
			s.history = append(s.history, v)
		}
	})
}

// insert executes the INSERT of a state.
func (s *server) insert(version lock.Millis, w *write) {
	s.statement(func() {
		if s.w.mutation.ServerVersion {
			version = s.now()
			if w != nil {
				w.version = version
			}
		}
		s.rows = append(s.rows, stateRow{version, w})
		s.w.trace("  inserted: version %d of %s", version, w)
		s.w.books.inserted(s.rows)
		s.changed()
	})
}

// remove executes the DELETE of a state.
func (s *server) remove(w *write) {
	s.statement(func() {
		s.rows = slices.DeleteFunc(s.rows, func(row stateRow) bool {
			if row.version >= w.version && !s.w.mutation.UnboundedDelete {
				return false
			}
			s.w.books.deleted(row, w)
			return true
		})
		s.gone = max(s.gone, w.version)
		s.w.trace("  deleted below version %d by %s", w.version, w)
		s.changed()
	})
}

// keepHouse merges and expires rows of the log, now and then.
func (s *server) keepHouse() {
	rng := s.w.rand("house")
	for s.w.sleep(time.Duration(rng.Int64N(int64(4 * time.Second)))) {
		s.statement(func() {
			choice := map[int]bool{}
			some := func(i int) bool {
				if _, ok := choice[i]; !ok {
					choice[i] = rng.IntN(3) > 0
				}
				return choice[i]
			}
			if s.w.climate.merges {
				s.log.Merge(key, some)
			}
			if s.w.climate.expiry {
				clear(choice)
				s.log.Expire(key, some)
			}
			s.changed()
		})
	}
}

// keepTime makes the server's clock jump.
func (s *server) keepTime() {
	if s.w.climate.jumps == steady {
		return
	}
	rng := s.w.rand("time")
	for s.w.sleep(time.Duration(rng.Int64N(int64(s.w.climate.storm / 3)))) {
		s.statement(func() {
			to := s.w.climate.jump(rng, s.jump)
			s.w.trace("the server's clock jumps from %s to %s", s.jump, to)
			s.w.books.jumped(to - s.jump)
			s.jump = to
		})
	}
}
