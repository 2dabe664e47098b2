// Command chstate-engine is a local ClickHouse: the engine of libchdb behind
// ClickHouse's HTTP interface, for trying chstate and for its tests.
package main

import (
	"os"

	"github.com/chstate/chstate/engine/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr))
}
