package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	dir, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if dir.Path() != path {
		t.Errorf("path is %s", dir.Path())
	}
	if err := dir.LayOut(); err != nil {
		t.Error(err)
	}
	if err := dir.LayOut(); err != nil {
		t.Error("a second time:", err)
	}
	var inUse *InUseError
	if _, err := Take(path); !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Errorf("taking it twice: %v", err)
	}
	if err := dir.Close(); err != nil {
		t.Error(err)
	}
	again, err := Take(path)
	if err != nil {
		t.Fatal("after it was given back:", err)
	}
	_ = again.Close()
}
