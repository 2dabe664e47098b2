// Command lines measures the library: each line is an operation of the store
// beside what it cannot be cheaper than. It prints them as JSON.
//
//	CLICKHOUSE_PASSWORD=… lines -addr HOST:PORT -user USER [-full] [-only updates,growth]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/bench/bare"
)

// bench is one run against one engine.
type bench struct {
	ctx      context.Context
	addr     string
	user     string
	password string
	full     bool
	schemas  []string
	lines    []Line
}

func main() {
	log.SetFlags(0)
	b := &bench{ctx: context.Background(), password: os.Getenv("CLICKHOUSE_PASSWORD")}
	flag.StringVar(&b.addr, "addr", "", "HOST:PORT of the engine's HTTP interface")
	flag.StringVar(&b.user, "user", "default", "who logs in")
	flag.BoolVar(&b.full, "full", false, "also the sizes that take long")
	only := flag.String("only", "", "names of the parts to run, with commas between")
	profile := flag.String("cpuprofile", "", "file for a CPU profile")
	holdOne := flag.String("hold", "", "hold the lock of a state in SCHEMA and wait to be killed; for the line of a lost machine")
	flag.Parse()
	if *holdOne != "" {
		b.holdUntilKilled(*holdOne)
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		check(err)
		check(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	for _, part := range []struct {
		name string
		run  func(*bench)
	}{
		{"updates", (*bench).updates}, {"reads", (*bench).reads}, {"sizes", (*bench).sizes}, {"many", (*bench).many},
		{"concurrency", (*bench).concurrency}, {"lock", (*bench).lock}, {"growth", (*bench).growth},
	} {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), part.name) {
			continue
		}
		began := time.Now()
		part.run(b)
		log.Printf("%s: %.1f s", part.name, time.Since(began).Seconds())
	}
	b.clean()
	check(json.NewEncoder(os.Stdout).Encode(b.lines))
}

// check ends the program: a figure that comes with an error is none.
func check(err error) {
	if err != nil {
		log.Fatal("bench: ", err)
	}
}

func (b *bench) add(lines ...Line) { b.lines = append(b.lines, lines...) }

// store opens a store in a schema of its own, or in the one that is named.
func (b *bench) store(schema string, change func(*chstate.Options)) *chstate.Store {
	host, port, err := net.SplitHostPort(b.addr)
	check(err)
	number, err := strconv.Atoi(port)
	check(err)
	o := chstate.Options{Host: host, Port: number, User: b.user, Password: b.password, Schema: schema, Command: "bench"}
	if change != nil {
		change(&o)
	}
	s, err := chstate.Open(b.ctx, o)
	check(err)
	check(s.Prepare(b.ctx))
	return s
}

// schema gives a new name; clean drops what is in it.
func (b *bench) schema() string {
	name := fmt.Sprintf("bench_lines_%d_%d", os.Getpid(), len(b.schemas))
	b.schemas = append(b.schemas, name)
	return name
}

// floor gives a table beside the store's, reached with bare clickhouse-go.
func (b *bench) floor(schema string) *bare.Table {
	t, err := bare.Open(b.addr, b.user, b.password, schema+".floor")
	check(err)
	check(t.Create(b.ctx))
	return t
}

// fresh is the usual beginning: a schema, a store and a floor in it.
func (b *bench) fresh(change func(*chstate.Options)) (schema string, s *chstate.Store, floor *bare.Table) {
	schema = b.schema()
	s = b.store(schema, change)
	return schema, s, b.floor(schema)
}

func (b *bench) clean() {
	t, err := bare.Open(b.addr, b.user, b.password, "")
	check(err)
	for _, schema := range b.schemas {
		check(t.Exec(b.ctx, "DROP DATABASE IF EXISTS "+schema))
	}
	check(t.Close())
}

// text gives a Singer state of about n bytes.
func text(n int) string {
	const before, after = `{"singer_state":{"bookmarks":{"s":{"replication_key_value":"2026-01-01","pad":"`, `"}}}}`
	return before + strings.Repeat("x", max(0, n-len(before)-len(after))) + after
}

// streams gives one whose n bytes are many streams, as large states are.
func streams(n int) string {
	var w strings.Builder
	w.WriteString(`{"singer_state":{"bookmarks":{`)
	for i := 0; w.Len() < n; i++ {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(&w, `"stream_%06d":{"replication_key":"updated_at","replication_key_value":"2026-01-01T00:00:%02dZ"}`, i, i%60)
	}
	w.WriteString("}}}")
	return w.String()
}
