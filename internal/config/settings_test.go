package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/settings.json anew")

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
