// Command run lets many processes write few states for long while everything
// that can fail does, and says what came out: see package soak.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/chstate/chstate/internal/soak"
)

func main() {
	soak.MaybeWriter()
	o := soak.Options{Log: os.Stderr}
	flag.DurationVar(&o.Duration, "duration", 10*time.Minute, "how long")
	flag.IntVar(&o.Writers, "writers", 16, "how many processes write")
	flag.IntVar(&o.IDs, "ids", 40, "how many states they write")
	flag.Float64Var(&o.Faulty, "faulty", 0.05, "the part of the requests that is cut, delayed or failed")
	flag.IntVar(&o.ServerKills, "server-kills", 5, "how often the server is killed")
	flag.IntVar(&o.WriterKills, "writer-kills", 60, "how often a writer is killed")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(o soak.Options) error {
	dir, err := os.MkdirTemp("", "chstate-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.Dir = dir
	r, err := soak.Run(o)
	if err != nil {
		return err
	}
	fmt.Print(r)
	return r.Err()
}
