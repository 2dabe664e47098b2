// Command floor does what a bookmark costs at the least: one INSERT of a row
// with clickhouse-go, told the types of the columns, over HTTP. It inserts the
// row once for each line that it reads, and answers each with the time that
// took in microseconds. bench/addon_update.py compares the add-on with it.
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

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: floor HOST:PORT USER SCHEMA.TABLE STATE_TEXT")
	}
	conn, err := clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP,
		Addr:     []string{os.Args[1]},
		Auth:     clickhouse.Auth{Username: os.Args[2], Password: os.Getenv("CLICKHOUSE_PASSWORD")},
		Settings: clickhouse.Settings{"async_insert": 0},
	})
	if err != nil {
		log.Fatal(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		began := time.Now()
		if err := insert(conn, os.Args[3], os.Args[4]); err != nil {
			log.Fatal(err)
		}
		fmt.Println(time.Since(began).Microseconds())
	}
}

// insert is given the types, because the batch would ask for them (DESCRIBE TABLE).
func insert(conn driver.Conn, table, text string) error {
	ctx := clickhouse.Context(context.Background(), clickhouse.WithColumnNamesAndTypes([]clickhouse.ColumnNameAndType{
		{Name: "state_id", Type: "String"},
		{Name: "partial_state", Type: "Nullable(String)"},
		{Name: "completed_state", Type: "Nullable(String)"},
		{Name: "updated_at", Type: "DateTime64(3)"},
	}))
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+table+" (state_id, partial_state, completed_state, updated_at)")
	if err != nil {
		return err
	}
	if err := batch.Append("floor", nil, text, time.Now()); err != nil {
		return err
	}
	return batch.Send()
}
