package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/bench/bare"
)

const partWriters = "6 writers at once"

// concurrency is line 6: writers of one process, on an id each and on one id.
func (b *bench) concurrency() {
	body := text(1000)
	for _, writers := range []int{1, 8, 64, 200} {
		for _, async := range []bool{false, true} {
			if async && !b.full && writers != 64 {
				continue // it is for many writers
			}
			schema, s, floor := b.fresh(func(o *chstate.Options) { o.AsyncInsert = async })
			name := fmt.Sprintf("%d on ids of their own", writers)
			if async {
				name += ", async_insert"
			}
			update := func(w int) error {
				return s.Update(b.ctx, chstate.State{ID: fmt.Sprint("w", w), Completed: json.RawMessage(body)})
			}
			all(writers, func(w int) error { // the first of a run is another line
				if err := update(w); !errors.Is(err, chstate.ErrLockLost) {
					return err
				}
				return nil
			})
			ours := b.load(writers, schema, floor, update)
			var bareLoad load
			if !async { // the floor knows no other way
				bareLoad = b.load(writers, schema, floor, func(w int) error { return floor.Insert(b.ctx, fmt.Sprint("w", w), body) })
			}
			b.addLoad(name, ours, bareLoad)
			check(s.Close())
		}
	}
	for _, writers := range []int{8, 64} {
		schema, s, floor := b.fresh(nil)
		ours := b.load(writers, schema, floor, func(int) error {
			return s.Update(b.ctx, chstate.State{ID: "one", Completed: json.RawMessage(body)})
		})
		b.addLoad(fmt.Sprintf("%d of one process on one id", writers), ours, load{})
		check(s.Close())
	}
	b.processes(4, body)
}

// processes are writers on one id that share nothing but the tables, as
// processes do: the lock travels.
func (b *bench) processes(n int, body string) {
	schema, first, floor := b.fresh(nil)
	stores := []*chstate.Store{first}
	for len(stores) < n {
		stores = append(stores, b.store(schema, nil))
	}
	ours := b.load(n, schema, floor, func(w int) error {
		return stores[w].Update(b.ctx, chstate.State{ID: "one", Completed: json.RawMessage(body)})
	})
	b.addLoad(fmt.Sprintf("%d processes on one id", n), ours, load{})
	for _, s := range stores {
		check(s.Close())
	}
}

// load is what some writers did in a while.
type load struct {
	took  []float64 // each write, in milliseconds
	rate  float64   // writes a second, all together
	parts []float64 // active parts of the largest table, over time
	lost  int       // writes refused, because the lock was lost
}

// load lets the writers write for two seconds.
func (b *bench) load(writers int, schema string, floor *bare.Table, write func(w int) error) load {
	const span = 2 * time.Second
	var (
		l  load
		mu sync.Mutex
	)
	began := time.Now()
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(200 * time.Millisecond):
			}
			n, err := floor.Query(b.ctx, "SELECT max(n) FROM (SELECT count() AS n FROM system.parts WHERE active AND database = '"+schema+"' GROUP BY table)")
			check(err)
			l.parts = append(l.parts, float64(n))
		}
	})
	all(writers, func(w int) error {
		for time.Since(began) < span {
			lost := false
			t := timed(func() error {
				err := write(w)
				if lost = errors.Is(err, chstate.ErrLockLost); lost {
					return nil
				}
				return err
			})
			mu.Lock()
			if lost {
				l.lost++
			} else {
				l.took = append(l.took, t)
			}
			mu.Unlock()
		}
		return nil
	})
	l.rate = float64(len(l.took)) / time.Since(began).Seconds()
	close(over)
	watch.Wait()
	return l
}

// all runs f for each writer at once.
func all(writers int, f func(w int) error) {
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() { check(f(w)) })
	}
	group.Wait()
}

func (b *bench) addLoad(name string, ours, floor load) {
	line := Line{Part: partWriters, Name: "Go: " + name + ": one update", Unit: milliseconds, Ours: stats(ours.took)}
	rate := Line{Part: partWriters, Name: "Go: " + name + ": throughput", Unit: "writes/s", Ours: one(ours.rate)}
	if len(floor.took) > 0 {
		f, r := stats(floor.took), one(floor.rate)
		line.Beside, line.Floor = insertFloor, &f
		rate.Beside, rate.Floor = insertFloor, &r
	}
	p99 := percentile(ours.took, 0.99)
	b.add(line, Line{Part: partWriters, Name: "Go: " + name + ": p99", Unit: milliseconds, Ours: one(p99)}, rate)
	if ours.lost > 0 { // the server was slower than a lease allows
		b.add(Line{Part: partWriters, Name: "Go: " + name + ": refused, the lock was lost", Unit: "writes", Ours: one(float64(ours.lost)), AtMost: 0.5})
	}
	if len(ours.parts) > 0 {
		b.add(Line{Part: partWriters, Name: "Go: " + name + ": most active parts of a table", Unit: "parts", Ours: one(percentile(ours.parts, 1)), AtMost: 100})
	}
}
