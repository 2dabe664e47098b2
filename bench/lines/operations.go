package main

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"github.com/chstate/chstate"
)

const (
	partUpdate = "1 update"
	partRead   = "3 read"
	partMany   = "4 many states"
	partSize   = "5 state size"

	insertFloor = "bare INSERT"
	selectFloor = "bare SELECT"
)

// updates are line 1: what a bookmark costs.
func (b *bench) updates() {
	_, s, floor := b.fresh(nil)
	defer s.Close()
	kilobyte := text(1000)
	st := chstate.State{ID: "run", Completed: json.RawMessage(kilobyte)}
	insert := func() error { return floor.Insert(b.ctx, "floor", kilobyte) }

	b.add(beside(partUpdate, "Go: complete, 1 kB, within a run", insertFloor, 1.3, 300, func() error { return s.Update(b.ctx, st) }, insert))
	part := chstate.State{ID: "run", Partial: st.Completed}
	b.add(beside(partUpdate, "Go: partial, 1 kB, within a run", insertFloor, 0, 200, func() error { return s.Update(b.ctx, part) }, insert))

	// The first one of a run: no lock lingers, and the row goes to the history.
	n := 0
	for i := range 55 {
		check(s.Set(b.ctx, chstate.State{ID: fmt.Sprint("first", i), Completed: st.Completed}))
	}
	b.add(beside(partUpdate, "Go: first of a run, 1 kB", insertFloor, 8, 50, func() error {
		n++
		return s.Update(b.ctx, chstate.State{ID: fmt.Sprint("first", n-1), Completed: st.Completed})
	}, insert))
}

// reads are the library's part of line 3.
func (b *bench) reads() {
	_, s, floor := b.fresh(nil)
	defer s.Close()
	check(s.Set(b.ctx, chstate.State{ID: "a", Completed: json.RawMessage(text(1000))}))
	check(floor.Insert(b.ctx, "a", text(1000)))
	b.add(beside(partRead, "Go: get, 1 kB", selectFloor, 0, 200, func() error {
		_, err := s.Get(b.ctx, "a")
		return err
	}, func() error { return floor.Select(b.ctx, "a") }))
}

// sizes are the library's part of line 5.
func (b *bench) sizes() {
	for _, size := range []struct {
		name          string
		bytes, rounds int
	}{{"1 kB", 1_000, 50}, {"100 kB", 100_000, 30}, {"1 MB", 1_000_000, 10}, {"14 MB", 14_000_000, 3}} {
		_, s, floor := b.fresh(nil)
		whole := streams(size.bytes)
		st := chstate.State{ID: "a", Completed: json.RawMessage(whole)}
		b.add(
			beside(partSize, "Go: set, "+size.name, insertFloor, 0, size.rounds, func() error { return s.Set(b.ctx, st) },
				func() error { return floor.Insert(b.ctx, "a", whole) }),
			beside(partSize, "Go: get, "+size.name, selectFloor, 0, size.rounds, func() error {
				_, err := s.Get(b.ctx, "a")
				return err
			}, func() error { return floor.Select(b.ctx, "a") }),
		)
		// A bookmark of one stream, merged onto a partial state of that size.
		check(s.Set(b.ctx, chstate.State{ID: "a", Partial: st.Completed}))
		part := chstate.State{ID: "a", Partial: json.RawMessage(text(200))}
		b.add(beside(partSize, "Go: partial merge onto "+size.name, insertFloor, 0, size.rounds, func() error { return s.Update(b.ctx, part) },
			func() error { return floor.Insert(b.ctx, "a", whole) }))
		check(s.Close())
	}
}

// many is line 4 in the library, at a size that the processes are not measured at.
func (b *bench) many() {
	if !b.full {
		return
	}
	const n = 1_000_000
	_, s, floor := b.fresh(nil)
	defer s.Close()
	line := func(name string, f func() error) {
		b.add(Line{Part: partMany, Name: "Go: " + name + ", 1,000,000 ids", Unit: milliseconds, Ours: one(timed(f))})
	}
	_ = floor
	line("SetAll", func() error {
		_, err := s.SetAll(b.ctx, generated(n))
		return err
	})
	line("IDs", func() error {
		for _, err := range s.IDs(b.ctx, "") {
			if err != nil {
				return err
			}
		}
		return nil
	})
	line("Export", func() error {
		_, err := s.Export(b.ctx, io.Discard, "")
		return err
	})
	line("ClearAll", func() error {
		_, err := s.ClearAll(b.ctx)
		return err
	})
}

// generated yields n small states.
func generated(n int) iter.Seq2[chstate.State, error] {
	return func(yield func(chstate.State, error) bool) {
		body := json.RawMessage(text(200))
		for i := range n {
			if !yield(chstate.State{ID: fmt.Sprintf("dev:tap-%07d-to-target", i), Completed: body}, nil) {
				return
			}
		}
	}
}
