// Command floor does what a bookmark costs at the least (see package bare): it
// inserts one row for each line that it reads, and answers each with the time
// that took in microseconds. The benchmark lets it take turns with the add-on.
//
//	CLICKHOUSE_PASSWORD=… floor HOST:PORT USER SCHEMA.TABLE STATE_TEXT
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/chstate/chstate/bench/bare"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: floor HOST:PORT USER SCHEMA.TABLE STATE_TEXT")
	}
	table, err := bare.Open(os.Args[1], os.Args[2], os.Getenv("CLICKHOUSE_PASSWORD"), os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := table.Create(ctx); err != nil {
		log.Fatal(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		began := time.Now()
		if err := table.Insert(ctx, "floor", os.Args[4]); err != nil {
			log.Fatal(err)
		}
		fmt.Println(time.Since(began).Microseconds())
	}
}
