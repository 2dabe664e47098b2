//go:build unix

package races

import (
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/chtest"
)

// The engine dies during a hold and comes back: within the lease the holder
// goes on as if nothing had been, past it the holder is told.
func TestEngineDiesDuringAHold(t *testing.T) {
	t.Parallel()
	engine := chtest.Start(t, chtest.Options{})
	conf := setupFor(t, engine.Server)
	conf.Lease = 60 * time.Second
	holder := start(t, conf)
	holder.must(order{Do: "lock", ID: "p"})
	holder.must(order{Do: "write", N: 1})
	engine.Kill(t)
	engine.Restart(t)
	holder.must(order{Do: "write", N: 2})
	brief := conf
	brief.Lease, brief.Wait = 2*time.Second, 300*time.Millisecond
	other := start(t, brief)
	other.refused(order{Do: "lock", ID: "p"}, "locked")
	holder.must(order{Do: "release"})
	other.must(order{Do: "lock", ID: "p"})
	if n := other.must(order{Do: "read"}); n != 2 {
		t.Errorf("after the engine came back there is %d, want 2", n)
	}

	other.must(order{Do: "write", N: 3})
	engine.Kill(t)
	other.told(2 * brief.Lease) // the engine is away
	other.refused(order{Do: "write", N: 100}, "lost")
	engine.Restart(t)
	takesOver(holder, "p", brief.Lease)
	if n := holder.must(order{Do: "read"}); n != 3 {
		t.Errorf("in the end there is %d, want 3", n)
	}
}

// Somebody empties the lock table during a hold: the holder finds out.
func TestLockTableIsEmptied(t *testing.T) {
	t.Parallel()
	server := chtest.Target(t)
	conf := setupFor(t, server)
	short := conf.victim()
	holder, next := start(t, short), start(t, conf)
	next.must(order{Do: "warm"})
	holder.must(order{Do: "lock", ID: "p"})
	holder.must(order{Do: "write", N: 1})
	server.SQL(t, "TRUNCATE TABLE `"+conf.Schema+"`.state_lock")
	next.must(order{Do: "lock", ID: "p"})
	holder.told(short.Lease)
	holder.refused(order{Do: "write", N: 100}, "lost")
	next.must(order{Do: "write", N: next.must(order{Do: "read"}) + 1})
	holder.must(order{Do: "release"})
	next.must(order{Do: "release"})
	if n := readNumber(t, conf, "p"); n != 2 {
		t.Errorf("in the end there is %d, want 2", n)
	}
}

// L08: the server's time zone is far away, and each session has another one.
func TestL08TimeZones(t *testing.T) {
	t.Parallel()
	engine := chtest.Start(t, chtest.Options{Env: []string{"TZ=Asia/Tokyo"}})
	if zone := engine.SQL(t, "SELECT timezone()"); zone != "Asia/Tokyo" {
		t.Fatalf("the server's time zone is %q", zone)
	}
	west := setupFor(t, engine.Server)
	west.Settings = map[string]string{"session_timezone": "America/Los_Angeles"}
	east := west
	east.Settings = map[string]string{"session_timezone": "Pacific/Auckland"}
	east.Wait = 500 * time.Millisecond
	plain := west
	plain.Settings = nil
	west = west.victim()
	holder, other, third := start(t, west), start(t, east), start(t, plain)
	third.must(order{Do: "warm"})
	holder.must(order{Do: "lock", ID: "p"})
	holder.must(order{Do: "write", N: 1})
	other.refused(order{Do: "lock", ID: "p"}, "locked")

	s, err := chstate.Open(t.Context(), east.options())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	locks, err := s.LocksOf(t.Context(), "p")
	if err != nil || len(locks) == 0 {
		t.Fatalf("locks: %v, %v", locks, err)
	}
	if age, left := locks[0].Now.Sub(locks[0].Seen), locks[0].FreeAt.Sub(locks[0].Now); age < 0 || age > 2*time.Second || left > west.Lease {
		t.Errorf("the claim is %s old and lives for %s", age, left)
	}
	if now := time.Since(locks[0].Now).Abs(); now > time.Minute {
		t.Errorf("the server's clock reads %s, which is %s away", locks[0].Now, now)
	}

	holder.kill()
	takesOver(third, "p", west.Lease)
	third.must(order{Do: "write", N: third.must(order{Do: "read"}) + 1})
	third.must(order{Do: "release"})
	other.must(order{Do: "lock", ID: "p"})
	if n := other.must(order{Do: "read"}); n != 2 {
		t.Errorf("in the end there is %d, want 2", n)
	}
	if got := strings.Fields(engine.SQL(t, "SELECT count() FROM `"+west.Schema+"`.state_lock WHERE expires_at > now64(3) + 60")); got[0] != "0" {
		t.Errorf("%s claims of the far future", got[0])
	}
}
