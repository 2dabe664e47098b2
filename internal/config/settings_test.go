package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/settings.json and the table of docs/settings.md anew")

// settings.json is the table for those who cannot call Settings: the Python
// tests compare the add-on's definitions and the URI parser with it.
func TestSettingsForPython(t *testing.T) {
	type row struct {
		Name    string   `json:"name"`
		Key     string   `json:"key"`
		Env     string   `json:"env"`
		Flag    string   `json:"flag"`
		Param   string   `json:"param"`
		Kind    string   `json:"kind"`
		Default string   `json:"default"`
		Secret  bool     `json:"secret"`
		Choices []string `json:"choices,omitempty"`
		Help    string   `json:"help"`
	}
	var want bytes.Buffer
	want.WriteString("[\n")
	for i, s := range Settings() {
		if i > 0 {
			want.WriteString(",\n")
		}
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(row{s.Name, s.Key(), s.Env(), s.Flag(), s.Param(), s.Kind.String(), s.Default, s.Secret, s.Choices, s.Help}); err != nil {
			t.Fatal(err)
		}
		want.Truncate(want.Len() - 1)
	}
	want.WriteString("\n]\n")
	const name = "testdata/settings.json"
	if *update {
		if err := os.WriteFile(name, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not the table of Settings: go test ./internal/config -run ForPython -update", name)
	}
}

// The table that users read is made of Settings.
func TestSettingsDocumented(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("\n| name | default | environment and `.env` | flag | |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range Settings() {
		name := s.Name
		if s.MeltanosOwn {
			name += " ¹"
		}
		def := "–"
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		if s.DefaultNote != "" {
			def = strings.TrimPrefix(def+"; "+s.DefaultNote, "–; ")
		}
		takes := ""
		switch s.Kind {
		case Choice:
			takes = " One of `" + strings.Join(s.Choices, "`, `") + "`."
		case Seconds:
			takes = " Seconds, fractions allowed."
		case Whole:
			takes = " " + strings.ToUpper(s.span()[:1]) + strings.TrimSuffix(s.span()[1:], ", such as "+s.Default) + "."
		case Switch:
			takes = " `true` or `false`."
		}
		flag := "–"
		if s.Flag() != "" {
			flag = "`--" + s.Flag() + "`"
		}
		fmt.Fprintf(&rows, "| **%s** | %s | `%s` | %s | %s%s |\n", name, def, s.Env(), flag, s.Help, takes)
	}
	rows.WriteString("\n")

	const name, begin, end = "../../docs/settings.md", "-update -->\n", "<!-- /settings -->"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", name)
	}
	if *update {
		if err := os.WriteFile(name, []byte(before+begin+rows.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		table = rows.String()
	}
	if table != rows.String() {
		t.Errorf("%s is not the table of Settings: go test ./internal/config -run Documented -update", name)
	}
}
