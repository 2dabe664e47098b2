package clickhouse

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/faultproxy"
)

// everyRead calls all that reads and writes nothing, and says whether anything was there.
func everyRead(ctx context.Context, db *DB) (found bool, err error) {
	for _, read := range []func() (bool, error){
		func() (bool, error) { _, found, err := db.Get(ctx, "a"); return found, err },
		func() (bool, error) {
			for _, err := range db.IDs(ctx, "") {
				return err == nil, err
			}
			return false, nil
		},
		func() (bool, error) {
			for _, err := range db.Rows(ctx, "a*") {
				return err == nil, err
			}
			return false, nil
		},
		func() (bool, error) {
			for _, err := range db.Archived(ctx, "a") {
				return err == nil, err
			}
			return false, nil
		},
		func() (bool, error) {
			now, newest, err := db.Versions(ctx)
			return now == 0 || len(newest) > 0, err
		},
		func() (bool, error) { claims, err := db.Claims(ctx); return len(claims) > 0, err },
	} {
		some, failed := read()
		found, err = found || some, errors.Join(err, failed)
	}
	return found, err
}

// TestReadsMakeNothing: looking at a schema that is not there, misspelt as a
// rule, makes none, says so in one line, and finds nothing.
func TestReadsMakeNothing(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	var logged chtest.Log
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	if found, err := everyRead(ctx, openWith(t, cfg)); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	warm := openWith(t, cfg)
	if err := warm.Warm(ctx); err != nil {
		t.Error(err)
	}
	if sent := w.Kinds(); strings.Contains(sent, "CREATE") {
		t.Errorf("sent %s", sent)
	}
	if n := chtest.SQL(t, "SELECT count() FROM system.databases WHERE name = "+quoteString(cfg.Schema)); n != "0" {
		t.Error("the schema was made")
	}
	if lines := logged.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, "there is no table "+cfg.Schema+".state") {
		t.Errorf("logged: %s", lines)
	}

	cfg.CreateTables = false
	_, _, err := openWith(t, cfg).Get(ctx, "a")
	wantKind(t, err, Schema, cfg.Schema+".state does not exist", "chstate init --print-sql")
}

// TestReadsExplainWrongTables: what a table of the right name lacks is told,
// not what the server thinks of the statement.
func TestReadsExplainWrongTables(t *testing.T) {
	ctx, db := ctxFor(t), open(t)
	chtest.SQL(t, "CREATE DATABASE "+quoteIdent(db.names.schema))
	chtest.SQL(t, "CREATE TABLE "+db.names.State()+" (state_id String, partial_state String, updated_at DateTime) ENGINE = MergeTree ORDER BY state_id")
	for _, err := range db.IDs(ctx, "") {
		wantKind(t, err, Schema, db.names.schema+".state is not what it must be", "completed_state")
	}
	_, _, err := db.Get(ctx, "a")
	wantKind(t, err, Schema, db.names.schema+".state is not what it must be", "completed_state")
}

// TestReadsOfOldServersAreRefused, although nothing is asked of the server before them.
func TestReadsOfOldServersAreRefused(t *testing.T) {
	ctx := ctxFor(t)
	w, cfg := newWire(t)
	if err := openWith(t, cfg).Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	for version, ok := range map[string]bool{"23.7.6.111": false, "23.8.16.40": true} {
		w.On(func(out http.ResponseWriter, r faultproxy.Request) bool {
			if r.Kind() != "hello" {
				return false
			}
			out.Header().Set("Content-Type", "application/octet-stream")
			_, _ = out.Write(nativeRow([]string{"n", "v", "r", "t"}, []any{"test", version, uint32(54466), "UTC"}))
			return true
		})
		_, _, err := openWith(t, cfg).Get(ctx, "a")
		if ok {
			if err != nil {
				t.Errorf("%s: %v", version, err)
			}
			continue
		}
		wantKind(t, err, Version, "23.7.6", "23.8 or newer")
	}
}
