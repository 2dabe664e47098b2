// Command chstate reads and writes Meltano's state in ClickHouse. See
// docs/cli.md, or run `chstate help`.
package main

import (
	"context"
	"os"

	"github.com/chstate/chstate/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
