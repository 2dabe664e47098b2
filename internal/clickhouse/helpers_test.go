package clickhouse

import (
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/lock"
)

// wantKind checks an error's kind, that its text has the parts, and that it is
// one line without a secret.
func wantKind(t testing.TB, err error, kind Kind, parts ...string) {
	t.Helper()
	e := explained(err)
	if e == nil {
		t.Fatalf("got %v, want an *Error of kind %s", err, kind)
	}
	if e.Kind != kind {
		t.Errorf("kind %s, want %s: %v", e.Kind, kind, err)
	}
	text := e.Error()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("the message lacks %q: %s", p, text)
		}
	}
	if strings.ContainsAny(text, "\n\r") {
		t.Errorf("the message has several lines: %q", text)
	}
	for _, secret := range []string{"s3cret", "t0ken"} {
		if strings.Contains(text, secret) {
			t.Errorf("the message holds a secret: %s", text)
		}
	}
}

func sqlOn(t testing.TB, _ *DB, statement string) string {
	t.Helper()
	return chtest.SQL(t, statement)
}

func lockRec(seq int) lock.Record {
	return lock.Record{ClaimID: "!0190", Seq: uint64(2 * seq), Lease: 10 * time.Second, Ceiling: lock.ServerFills, Holder: `{"host":"h"}`}
}
