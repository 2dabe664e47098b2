package soak

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	MaybeWriter()
	os.Exit(m.Run())
}

// TestSoak is `make soak` for 20 seconds.
func TestSoak(t *testing.T) {
	r, err := Run(Options{
		Duration: 20 * time.Second, Writers: 6, IDs: 8, Faulty: 0.05, ServerKills: 1, WriterKills: 6,
		Dir: t.TempDir(), Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", r)
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}
