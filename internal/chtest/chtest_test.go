package chtest

import (
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestParseURI(t *testing.T) {
	for uri, want := range map[string]Server{
		"clickhouse://u:p%40w@h:9/db":          {Host: "h", Port: 9, User: "u", Password: "p@w"},
		"clickhouse://h/db":                    {Host: "h", Port: 8123, User: "default"},
		"clickhouse://u@[::1]:1/?secure=false": {Host: "::1", Port: 1, User: "u"},
		"clickhouse://u:p@h/db?secure=true":    {Host: "h", Port: 8443, User: "u", Password: "p", Secure: true},
	} {
		if got, err := parseURI(uri); err != nil || got != want {
			t.Errorf("%s: %+v, %v", uri, got, err)
		}
	}
	for _, uri := range []string{"http://u:s3cret@h/", "clickhouse:///", "clickhouse://u:s3cret@h:x/", "clickhouse://u:s3cret@h/?secure=perhaps"} {
		if _, err := parseURI(uri); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestEngineOfItsOwn: it keeps its data over a crash, on the same port.
func TestEngineOfItsOwn(t *testing.T) {
	e := Start(t, Options{User: "u", Password: "p w"})
	schema := SchemaOn(t, e.Server)
	e.SQL(t, "CREATE DATABASE "+schema)
	e.SQL(t, "CREATE TABLE "+schema+".t (a UInt8) ENGINE = MergeTree ORDER BY a")
	e.SQL(t, "INSERT INTO "+schema+".t VALUES (7)")
	before := e.Server
	e.Kill(t)
	if _, err := e.Do("SELECT 1"); err == nil {
		t.Error("a killed engine answers")
	}
	e.Restart(t)
	if e.Server != before {
		t.Errorf("restarted as %+v, was %+v", e.Server, before)
	}
	if got := e.SQL(t, "SELECT a FROM "+schema+".t"); got != "7" {
		t.Errorf("got %q", got)
	}
	wrong := e.Server
	wrong.Password = "no"
	if _, err := wrong.Do("SELECT 1"); err == nil || !strings.Contains(err.Error(), "516") {
		t.Errorf("wrong password: %v", err)
	}
}

func TestSharedEngine(t *testing.T) {
	if got := SQL(t, "SELECT 1 + 1"); got != "2" {
		t.Errorf("got %q", got)
	}
	if a, b := Schema(t), Schema(t); a == b {
		t.Error("two tests share a schema")
	}
	if uri := Target(t).URI("db"); !strings.HasPrefix(uri, "clickhouse://") {
		t.Errorf("uri %s", uri)
	}
}
