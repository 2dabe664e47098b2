package chstate_test

import (
	"testing"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

func TestMain(m *testing.M) { chtest.Clean(m) }

// options point at the test server, with tables of the test's own.
func options(t testing.TB) chstate.Options {
	t.Helper()
	srv := chtest.Target(t)
	return chstate.Options{
		Host: srv.Host, Port: srv.Port, User: srv.User, Password: srv.Password, Secure: srv.Secure,
		Schema: chtest.Schema(t), Command: "go test", Version: "test",
	}
}

func open(t testing.TB, o chstate.Options) *chstate.Store {
	t.Helper()
	s, err := chstate.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func newStore(t testing.TB) *chstate.Store { t.Helper(); return open(t, options(t)) }
