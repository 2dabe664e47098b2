package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chstate/chstate"
)

const partLock = "7 lock"

// lock is the library's part of line 7.
func (b *bench) lock() {
	schema, s, floor := b.fresh(func(o *chstate.Options) { o.Lock.Linger = -1 })
	defer s.Close()
	n := 0
	b.add(beside(partLock, "Go: claim, look, release", insertFloor, 4, 100, func() error {
		n++
		h, err := s.Lock(b.ctx, fmt.Sprint("id", n))
		if err == nil {
			h.Release()
		}
		return err
	}, func() error { return floor.Insert(b.ctx, "floor", text(1000)) }))

	// From a release to the oldest waiter of another process.
	other := b.store(schema, func(o *chstate.Options) { o.Lock.Linger = -1 })
	defer other.Close()
	var took []float64
	for i := range 20 {
		id := fmt.Sprint("handed over ", i)
		h, err := s.Lock(b.ctx, id)
		check(err)
		got := make(chan time.Time)
		go func() {
			h, err := other.Lock(b.ctx, id)
			check(err)
			got <- time.Now()
			h.Release()
		}()
		time.Sleep(time.Duration(230+i*17) * time.Millisecond) // it waits by now, at any point between two looks
		released := time.Now()
		go h.Release()
		took = append(took, ms((<-got).Sub(released)))
	}
	b.add(Line{Part: partLock, Name: "Go: hand-over to a waiter", Unit: milliseconds, Ours: stats(took), AtMost: 100})
	b.add(Line{Part: partLock, Name: "Go: 20 waiters, 20 holds of 100 ms", Unit: milliseconds, Ours: one(b.line(schema)), AtMost: 1.5*20*100 + 3000})
	b.add(Line{Part: partLock, Name: "Go: freed after the holder's machine is lost (lease 10 s)", Unit: milliseconds, Ours: one(b.afterLoss(schema)), AtMost: 12_000})
}

// line lets twenty stores wait for one id, and gives the time from the release
// that they wait for until the last of them has been served.
func (b *bench) line(schema string) float64 {
	const waiters, hold = 20, 100 * time.Millisecond
	change := func(o *chstate.Options) { o.Lock.Linger = -1 }
	first := b.store(schema, change)
	defer first.Close()
	h, err := first.Lock(b.ctx, "line")
	check(err)
	var served sync.WaitGroup
	for range waiters {
		s := b.store(schema, change)
		defer s.Close()
		check(s.Prepare(b.ctx))
		served.Go(func() {
			h, err := s.Lock(b.ctx, "line")
			check(err)
			time.Sleep(hold)
			h.Release()
		})
	}
	time.Sleep(2 * time.Second) // all of them have looked by now
	released := time.Now()
	h.Release()
	served.Wait()
	return ms(time.Since(released))
}

// afterLoss kills a process that holds a lock, and gives the time until
// another has it.
func (b *bench) afterLoss(schema string) float64 {
	s := b.store(schema, nil)
	defer s.Close()
	self, err := os.Executable()
	check(err)
	cmd := exec.Command(self, "-addr", b.addr, "-user", b.user, "-hold", schema)
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	check(err)
	check(cmd.Process.Kill())
	killed := time.Now()
	_ = cmd.Wait() // killed
	h, err := s.Lock(b.ctx, "lost")
	check(err)
	defer h.Release()
	return ms(time.Since(killed))
}

func (b *bench) holdUntilKilled(schema string) {
	_, err := b.store(schema, nil).Lock(b.ctx, "lost")
	check(err)
	fmt.Println("held")
	time.Sleep(time.Minute)
	log.Fatal("nobody killed me")
}
