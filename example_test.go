package chstate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

// exampleStore opens a store on the tests' own server. Yours is opened with
// chstate.Options{Host: "clickhouse", User: "etl", Password: "…"}.
func exampleStore(schema string) (*chstate.Store, func()) {
	srv, err := chtest.Shared()
	if err != nil {
		log.Fatal(err)
	}
	store, err := chstate.Open(context.Background(), chstate.Options{
		Host: srv.Host, Port: srv.Port, User: srv.User, Password: srv.Password, Secure: srv.Secure, Schema: schema,
	})
	if err != nil {
		log.Fatal(err)
	}
	return store, func() {
		err := store.Close()
		_, dropErr := srv.Do("DROP DATABASE IF EXISTS " + schema)
		if err := errors.Join(err, dropErr); err != nil {
			log.Fatal(err)
		}
	}
}

func ExampleStore_Update() {
	ctx := context.Background()
	store, done := exampleStore("example_update")
	defer done()

	// A finished run leaves a complete state; an unfinished one moves single bookmarks.
	id := "dev:tap-github-to-target-postgres"
	for _, st := range []chstate.State{
		{ID: id, Completed: json.RawMessage(`{"singer_state":{"bookmarks":{"issues":{"since":"2026-01-01"},"commits":{"since":"2026-01-01"}}}}`)},
		{ID: id, Partial: json.RawMessage(`{"singer_state":{"bookmarks":{"issues":{"since":"2026-02-01"}}}}`)},
	} {
		if err := store.Update(ctx, st); err != nil {
			log.Fatal(err)
		}
	}
	st, err := store.Get(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	next, err := st.Merged()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(next))
	// Output: {"singer_state":{"bookmarks":{"issues":{"since":"2026-02-01"},"commits":{"since":"2026-01-01"}}}}
}

func ExampleStore_Lock() {
	ctx := context.Background()
	store, done := exampleStore("example_lock")
	defer done()

	hold, err := store.Lock(ctx, "dev:tap-to-target")
	if err != nil {
		log.Fatal(err) // a *chstate.LockedError says who holds it
	}
	defer hold.Release()
	_, err = hold.Get(ctx)
	fmt.Println("no state yet:", errors.Is(err, chstate.ErrNoState))
	err = hold.Set(ctx, chstate.State{Completed: json.RawMessage(`{"singer_state":{"bookmarks":{}}}`)})
	if errors.Is(err, chstate.ErrLockLost) {
		log.Fatal("somebody else may hold it by now: take the write for not done")
	}
	fmt.Println("written:", err == nil)
	// Output:
	// no state yet: true
	// written: true
}

func ExampleStore_IDs() {
	ctx := context.Background()
	store, done := exampleStore("example_ids")
	defer done()

	for _, id := range []string{"dev:a-to-b", "dev:c-to-d", "prod:a-to-b"} {
		if err := store.Set(ctx, chstate.State{ID: id, Completed: json.RawMessage(`{"singer_state":{}}`)}); err != nil {
			log.Fatal(err)
		}
	}
	for id, err := range store.IDs(ctx, "dev:*") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
	}
	// Output:
	// dev:a-to-b
	// dev:c-to-d
}

func ExampleLockedError() {
	err := fmt.Errorf("nightly load: %w", &chstate.LockedError{ID: "dev:a-to-b", Waited: 30 * time.Second})
	var locked *chstate.LockedError
	if errors.As(err, &locked) {
		fmt.Printf("%s is held; waited %s\n", locked.ID, locked.Waited)
	}
	// Output: dev:a-to-b is held; waited 30s
}
