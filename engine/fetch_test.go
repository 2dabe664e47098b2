package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// fetch runs fetch-libchdb.sh.
func fetch(env ...string) (string, error) {
	cmd := exec.Command("sh", "./fetch-libchdb.sh")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestFetchRefusesAnotherPackage(t *testing.T) {
	cache := t.TempDir()
	tarball := filepath.Join(t.TempDir(), "package.tgz")
	must(t, os.WriteFile(tarball, []byte("not the package"), 0o600))
	out, err := fetch("XDG_CACHE_HOME="+cache, "CHDB_TARBALL="+tarball)
	if err == nil {
		t.Fatal("it is taken")
	}
	contains(t, "message", out, "has the sha512", "it is not used")
	out, err = fetch("XDG_CACHE_HOME="+cache, "CHDB_TARBALL=/nowhere.tgz")
	if err == nil {
		t.Fatal("nothing is taken")
	}
	contains(t, "message", out, "/nowhere.tgz, which cannot be read")
	left, err := os.ReadDir(filepath.Join(cache, "chstate", "libchdb", chdb.Version))
	must(t, err)
	equal(t, "files left", len(left), 0)
}

func TestFetchPinsTheVersionInUse(t *testing.T) {
	script, err := os.ReadFile("fetch-libchdb.sh")
	must(t, err)
	contains(t, "script", string(script), "\nVERSION="+chdb.Version+"\n")
	readme, err := os.ReadFile("README.md")
	must(t, err)
	contains(t, "README.md", string(readme), "libchdb "+chdb.Version)
}

func TestFetchHasNothingToDo(t *testing.T) {
	library, err := chdb.Locate()
	must(t, err)
	if os.Getenv(chdb.PathVariable) != "" {
		t.Logf("the library in use is %s, from %s", library, chdb.PathVariable)
		return
	}
	out, err := fetch("CHDB_TARBALL=/nowhere.tgz")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	equal(t, "output", strings.TrimSpace(out), "")
}
