// Command go moves one bookmark of a state forward, as an unfinished run does.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/chstate/chstate"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err) // one line: what was tried, on which host, what to do next
	}
}

func run(ctx context.Context) error {
	store, err := chstate.Open(ctx, chstate.Options{Host: "clickhouse", User: "etl", Password: os.Getenv("CLICKHOUSE_PASSWORD")})
	if err != nil {
		return err
	}
	defer store.Close()

	bookmark := json.RawMessage(`{"singer_state":{"bookmarks":{"issues":{"since":"2026-11-29"}}}}`)
	if err := store.Update(ctx, chstate.State{ID: "dev:a-to-b", Partial: bookmark}); err != nil {
		return err
	}
	state, err := store.Get(ctx, "dev:a-to-b")
	if err != nil {
		return err
	}
	next, err := state.Merged() // what the next run starts from
	fmt.Printf("%s\n", next)
	return err
}
