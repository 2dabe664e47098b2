package chstate_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeProgram: the Go program in README.md is the one of examples/go,
// which compiles.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(readme), "```go\n")
	program, _, _ = strings.Cut(program, "```\n")
	example, err := os.ReadFile("examples/go/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(example), "package main\n") // but for the comment on top
	if program != "package main\n"+want {
		t.Errorf("README.md has another program than examples/go/main.go:\n%s", program)
	}
}
