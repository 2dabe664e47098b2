package cli

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// printVersion works without libchdb, so it names the release that is needed.
func printVersion(stdout io.Writer) error {
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && version == "(devel)" {
				version = s.Value
			}
		}
	}
	_, err := fmt.Fprintf(stdout, "chstate-engine %s, libchdb %s\n", version, chdb.Version)
	return err
}
