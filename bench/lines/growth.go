package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"github.com/chstate/chstate"
)

const partGrowth = "8 growth"

// growth is line 8: what the updates before cost those after. The floor is a
// bare INSERT into a table of its own that has seen as many.
func (b *bench) growth() {
	steps := []int{1_000, 10_000}
	if b.full {
		steps = append(steps, 100_000)
	}
	schema, s, floor := b.fresh(nil)
	defer s.Close()
	body := text(1000)
	st := chstate.State{ID: "one", Completed: json.RawMessage(body)}
	update := func() error { return s.Update(b.ctx, st) }
	insert := func() error { return floor.Insert(b.ctx, "floor", body) }
	n := 0
	measure := func() {
		before := fmt.Sprintf("after %d updates", n)
		b.add(beside(partGrowth, "Go: update "+before, insertFloor, 1.3, 200, update, insert))
		b.add(beside(partGrowth, "Go: get "+before, selectFloor, 0, 50, func() error {
			_, err := s.Get(b.ctx, "one")
			return err
		}, func() error { return floor.Select(b.ctx, "floor") }))
		n += 220
	}
	measure()
	goroutines, sockets := runtime.NumGoroutine(), openFiles()
	for _, step := range steps {
		for ; n < step; n++ {
			check(update())
		}
		measure()
		if step == 10_000 {
			b.add(
				Line{Part: partGrowth, Name: "Go: more goroutines after 10,000 updates", Unit: "goroutines", Ours: one(float64(runtime.NumGoroutine() - goroutines)), AtMost: 1},
				Line{Part: partGrowth, Name: "Go: more open files after 10,000 updates", Unit: "files", Ours: one(float64(openFiles() - sockets)), AtMost: 1},
			)
		}
	}
	for _, table := range []string{"state", "state_lock", "state_history"} {
		for _, of := range []struct{ what, unit, sum string }{{"rows", "rows", "sum(rows)"}, {"size", "bytes", "sum(bytes_on_disk)"}, {"active parts", "parts", "count()"}} {
			figure, err := floor.Query(b.ctx, fmt.Sprintf("SELECT %s FROM system.parts WHERE active AND database = '%s' AND table = '%s'", of.sum, schema, table))
			check(err)
			b.add(Line{Part: partGrowth, Name: fmt.Sprintf("%s after %d updates: %s", table, n, of.what), Unit: of.unit, Ours: one(float64(figure))})
		}
	}
}

// openFiles counts the process's open files, connections included; 0 where
// the system does not tell.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
