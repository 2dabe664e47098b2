package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := make(turns, 1)
		end, err := all.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), turnTime/2)
		defer cancel()
		if _, err := all.take(impatient); !errors.Is(err, errGone) {
			t.Errorf("a client that went away while it waited: %v", err)
		}
		began := time.Now()
		next, err := all.take(t.Context()) // the first one does not end
		if waited := time.Since(began); err != nil || waited != turnTime/2 {
			t.Errorf("waited %s behind a statement that takes long: %v", waited, err)
		}
		end()
		next()
		next()
		if len(all) != 0 {
			t.Errorf("%d turns are taken when all have ended", len(all))
		}
	})
}
