// Command write makes a certificate authority and what it signs, for the tests
// of the add-on: go run ./internal/testca/write FOLDER.
package main

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/chstate/chstate/internal/testca"
)

func main() {
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	ca, err := testca.New(dir)
	if err != nil {
		return err
	}
	for name, good := range map[string]time.Duration{"server": time.Hour, "client": time.Hour, "late": -time.Hour} {
		if _, _, err := ca.Issue(name, good, net.IPv4(127, 0, 0, 1)); err != nil {
			return err
		}
	}
	return nil
}
