package sqltext

import (
	"testing"
)

func TestAnalyze(t *testing.T) {
	for _, c := range []struct {
		text     string
		verb     string
		format   string
		second   string // the text from the second statement on
		readOnly bool
	}{
		{"SELECT 1", "SELECT", "", "", true},
		{"  -- comment\n/* a /* nested */ one */ select 1 format JSON;", "SELECT", "JSON", "", true},
		{"SELECT 1 FORMAT JSON SETTINGS max_threads = 1", "SELECT", "JSON", "", true},
		{"SELECT format FROM t", "SELECT", "", "", true},
		{"SELECT format('{}', a) FROM format(CSV, 'a') AS format", "SELECT", "", "", true},
		{"SELECT 'FORMAT JSON; SELECT' AS `FORMAT x;`", "SELECT", "", "", true},
		{"SELECT $$; FORMAT$$, $tag$ ; $tag$", "SELECT", "", "", true},
		{"SELECT 1; ; -- the end\n", "SELECT", "", "", true},
		{"SELECT 1; SELECT 2", "SELECT", "", "SELECT 2", true},
		{"WITH a AS (SELECT 1) SELECT * FROM a FORMAT CSV", "SELECT", "CSV", "", true},
		{"WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "INSERT", "", "", false},
		{"(SELECT 1) UNION ALL (SELECT 2)", "SELECT", "", "", true},
		{"FROM t SELECT a", "FROM", "", "", true},
		{"SHOW TABLES FORMAT TSV", "SHOW", "TSV", "", true},
		{"DROP TABLE t", "DROP", "", "", false},
		{"ALTER TABLE t DELETE WHERE 1", "ALTER", "", "", false},
		{"SET a = 1; SELECT 1", "SET", "", "SELECT 1", true},
		{"USE `a;b`", "USE", "", "", true},
		{"", "", "", "", true},
		{"'unfinished", "", "", "", true},
		{"SELECT 'unfinished; x", "SELECT", "", "", true},
	} {
		s := Analyze([]byte(c.text))
		second := ""
		if s.Second >= 0 {
			second = c.text[s.Second:]
		}
		if s.Verb != c.verb || s.Format != c.format || second != c.second || s.ReadOnly() != c.readOnly || s.Insert != nil {
			t.Errorf("%q is read as %+v", c.text, s)
		}
	}
}

func TestInsert(t *testing.T) {
	for _, c := range []struct{ text, data, fromFile string }{
		{"INSERT INTO t VALUES (1, 'a;b')", " (1, 'a;b')", "INSERT INTO t  FROM INFILE F COMPRESSION 'none'  FORMAT Values"},
		{"insert into t (a, `values`, format) format CSV\n1,2", "1,2", "insert into t (a, `values`, format)  FROM INFILE F COMPRESSION 'none'  FORMAT CSV"},
		{"INSERT INTO TABLE values.format FORMAT Native \t\r\n\n\x00", "\n\x00", "INSERT INTO TABLE values.format  FROM INFILE F COMPRESSION 'none'  FORMAT Native"},
		{"INSERT INTO t SETTINGS async_insert=0 FORMAT TSV\n", "", "INSERT INTO t  FROM INFILE F COMPRESSION 'none' SETTINGS async_insert=0  FORMAT TSV"},
		{"INSERT INTO FUNCTION null('a UInt8') VALUES (1)", " (1)", "INSERT INTO FUNCTION null('a UInt8')  FROM INFILE F COMPRESSION 'none'  FORMAT Values"},
		{"INSERT INTO {t:Identifier} FORMAT TSV\n1", "1", "INSERT INTO {t:Identifier}  FROM INFILE F COMPRESSION 'none'  FORMAT TSV"},
		{"INSERT INTO t SELECT f(a) FROM input('a String') WHERE a != 'FORMAT' FORMAT CSV\nx", "x", "INSERT INTO t SELECT f(a) FROM file(F, CSV, 'a String') WHERE a != 'FORMAT' "},
		{"INSERT t FORMAT JSONEachRow {}", "{}", "INSERT t  FROM INFILE F COMPRESSION 'none'  FORMAT JSONEachRow"},
	} {
		s := Analyze([]byte(c.text))
		if s.Insert == nil {
			t.Errorf("%q has no data: %+v", c.text, s)
			continue
		}
		if data := c.text[s.Insert.Data:]; data != c.data {
			t.Errorf("%q has the data %q, not %q", c.text, data, c.data)
		}
		if got := string(s.Insert.FromFile([]byte(c.text), "F")); got != c.fromFile {
			t.Errorf("%q becomes\n%q, not\n%q", c.text, got, c.fromFile)
		}
	}
	for _, text := range []string{
		"INSERT INTO t SELECT 1", "INSERT INTO t SELECT a FROM t2 FORMAT CSV", "INSERT INTO t (SELECT 1)",
		"INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x", "INSERT INTO t",
	} {
		if s := Analyze([]byte(text)); s.Insert != nil || s.Verb != "INSERT" {
			t.Errorf("%q is taken to bring data: %+v", text, s)
		}
	}
}

func TestFilesOfTheClient(t *testing.T) {
	if s := Analyze([]byte("INSERT INTO t FROM INFILE 'x' FORMAT CSV")); !s.InFile {
		t.Error("FROM INFILE is not seen")
	}
	if s := Analyze([]byte("SELECT 1 INTO OUTFILE 'x'")); !s.OutFile {
		t.Error("INTO OUTFILE is not seen")
	}
	if s := Analyze([]byte("SELECT 1 INTO OUTFILE 'x' FORMAT CSV")); !s.OutFile {
		t.Error("INTO OUTFILE is not seen before FORMAT")
	}
}

func TestSet(t *testing.T) {
	s := Analyze([]byte("SET a = 1, b='x, y', c = map('k', [1, 2]), d=-5;"))
	want := map[string]string{"a": "1", "b": "'x, y'", "c": "map('k', [1, 2])", "d": "-5"}
	if len(s.Settings) != len(want) || s.Second != -1 {
		t.Errorf("settings are %q", s.Settings)
	}
	for name, value := range want {
		if s.Settings[name] != value {
			t.Errorf("%s is %q, not %q", name, s.Settings[name], value)
		}
	}
	if s := Analyze([]byte("USE `my db`")); s.Database != "`my db`" {
		t.Errorf("database is %q", s.Database)
	}
}

func FuzzAnalyze(f *testing.F) {
	for _, seed := range []string{"SELECT 1", "INSERT INTO t VALUES (1)", "INSERT INTO t SELECT a FROM input('x' FORMAT", "SET a=", "$$", "/*", "WITH", "INSERT INTO a. FORMAT x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := Analyze(text)
		if s.Insert != nil {
			if s.Insert.Data > len(text) {
				t.Fatalf("data begins behind the end: %+v", s.Insert)
			}
			s.Insert.FromFile(text, "'path'")
		}
		if s.Second > len(text) || s.End > len(text) || s.FormatEnd > len(text) {
			t.Fatalf("behind the end: %+v", s)
		}
	})
}
