package service

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chstate/chstate/internal/chtest"
)

// real starts a service on the test server, with tables in the schema.
func real(t *testing.T, schema string) *talk {
	t.Helper()
	c := run(t, Config{Version: "9.9", Open: OpenStore})
	c.hear()
	init, err := json.Marshal(map[string]any{
		"id": 1, "op": "init", "uri": chtest.Target(t).URI("default"),
		"settings": map[string]any{"schema": schema, "lock_timeout_seconds": 10},
		"command":  "meltano run a b",
	})
	if err != nil {
		t.Fatal(err)
	}
	c.say(string(init))
	c.ok(1)
	return c
}

func TestOnTheRealStore(t *testing.T) {
	schema := chtest.Schema(t)
	c := real(t, schema)
	n := c.lock(2, "a")
	half := `{"k": "` + strings.Repeat("é", 5_000_000) + `"}`
	line, err := json.Marshal(map[string]any{"id": 3, "op": "set", "state_id": "a", "hold": n, "partial": half})
	if err != nil {
		t.Fatal(err)
	}
	c.say(string(line))
	c.ok(3)
	c.say(fmt.Sprintf(`{"op":"release","hold":%d}`, n))
	c.say(`{"id":4,"op":"get","state_id":"a"}`)
	if st := c.ok(4)["state"].(map[string]any); st["partial"] != half || st["completed"] != "{}" {
		t.Error("the state that came back is not the one that was set")
	}
	c.say(`{"id":5,"op":"ids"}`)
	if ids := c.answer(5).Chunk; len(ids) != 1 || string(ids[0]) != `"a"` {
		t.Errorf("ids %s", ids)
	}
	c.ok(5)
	c.say(`{"id":6,"op":"clear_all"}`)
	if n := c.ok(6)["count"]; n != 1.0 {
		t.Errorf("cleared %v", n)
	}
	c.end()
}

// The end of a caller that holds a lock frees it for the next one at once,
// lingering or not.
func TestTheEndOfACallerFreesItsLocks(t *testing.T) {
	schema := chtest.Schema(t)
	first, second := real(t, schema), real(t, schema)
	first.lock(2, "a")
	n := first.lock(3, "b")
	first.say(fmt.Sprintf(`{"op":"release","hold":%d}`, n)) // lingers
	second.say(`{"id":2,"op":"lock","state_id":"a"}`)
	second.say(`{"id":3,"op":"ping"}`)
	second.ok(3)
	began := time.Now()
	first.end()
	second.ok(2)
	second.lock(4, "b")
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("the locks were free after %v", d)
	}
	second.end()
}

func TestARefusedSettingIsNamed(t *testing.T) {
	_, err := OpenStore(Init{
		URI:      "clickhouse://u:secret@h/d",
		Settings: map[string]any{"lock_timeout_seconds": json.Number("0")},
	}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "lock_timeout_seconds") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	_, err = OpenStore(Init{URI: "clickhouse://h/d"}, slog.New(slog.DiscardHandler))
	if f := asFailure(err); f.Code != codeMissing || !strings.Contains(f.Message, "user") {
		t.Errorf("got %+v", f)
	}
}
