package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chstate/chstate"
)

// projectCase is a Meltano project; project_answers.json has what Meltano made of it.
type projectCase struct {
	Name  string            `json:"name"`
	Files map[string]string `json:"files"` // {ROOT} stands for the folder
	Env   map[string]string `json:"env"`
	Cwd   string            `json:"cwd"`
	// Stricter says why we refuse what Meltano takes.
	Stricter string `json:"stricter"`
}

// lay writes the project's files and gives what Resolve needs.
func (c projectCase) lay(t *testing.T) (in Inputs, root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range c.Files {
		writeFile(t, filepath.Join(root, filepath.FromSlash(name)), strings.ReplaceAll(text, "{ROOT}", root))
	}
	in.Dir = filepath.Join(root, filepath.FromSlash(c.Cwd))
	for name, v := range c.Env {
		in.Env = append(in.Env, name+"="+strings.ReplaceAll(v, "{ROOT}", root))
	}
	return in, root
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each project gives the same options whether we read it or Meltano does and
// hands its answer to the add-on.
func TestMeltanosAnswers(t *testing.T) {
	answers := readJSON[map[string]map[string]any](t, "testdata/project_answers.json")
	for _, c := range readJSON[[]projectCase](t, "testdata/projects.json") {
		t.Run(c.Name, func(t *testing.T) {
			in, root := c.lay(t)
			answer, ok := answers[c.Name]
			if !ok {
				t.Fatal("there is no answer: run python/tests/test_settings_parity.py")
			}
			ours, err := Resolve(in)
			switch {
			case c.Stricter != "":
				if looser := strings.HasPrefix(c.Stricter, "looser"); looser != (err == nil) {
					t.Fatalf("error %v, although %s", err, c.Stricter)
				}
				return
			case answer["error"] != nil:
				if err == nil || !errors.Is(err, chstate.ErrSettings) {
					t.Fatalf("error %v, where Meltano gives %v", err, answer["error"])
				}
				return
			}
			kwargs := map[string]any{}
			for name, v := range answer {
				if text, ok := v.(string); ok {
					v = strings.ReplaceAll(text, "{ROOT}", root)
				}
				kwargs[name] = v
			}
			theirs, theirErr := FromAddon(fmt.Sprint(kwargs["uri"]), kwargs)
			if (err == nil) != (theirErr == nil) {
				t.Fatalf("ours: %v; with Meltano's answer: %v", err, theirErr)
			}
			if err != nil {
				return
			}
			// Meltano hands in its own defaults of these two.
			fillLock(&ours.Options)
			if diff := cmp.Diff(theirs.Options, ours.Options); diff != "" {
				t.Errorf("-Meltano +ours:\n%s", diff)
			}
		})
	}
}

func fillLock(o *chstate.Options) {
	for _, name := range []string{"lock_timeout_seconds", "lock_retry_seconds"} {
		s, _ := find(name)
		v, _ := s.parse(s.Default)
		filled := *o
		s.apply(&filled, v)
		if o.Lock.Lease == 0 {
			o.Lock.Lease = filled.Lock.Lease
		}
		if o.Lock.Retry == 0 {
			o.Lock.Retry = filled.Lock.Retry
		}
	}
}

// dotenv.json has texts put together by chance, with what python-dotenv made of them.
func TestDotenvAsPythonReadsIt(t *testing.T) {
	type entry struct {
		Text   string            `json:"text"`
		Values map[string]string `json:"values"`
	}
	environ := map[string]string{"OUTSIDE": "from the environment", "A": "environment's A"}
	for _, e := range readJSON[[]entry](t, "testdata/dotenv.json") {
		if diff := cmp.Diff(e.Values, parseDotenv(e.Text, environ)); diff != "" {
			t.Errorf("%q: -python +ours:\n%s", e.Text, diff)
		}
	}
}

func FuzzParseDotenv(f *testing.F) {
	f.Add("A='x\\'y'\nB=\"${A}\" # c\nexport C")
	f.Fuzz(func(t *testing.T, text string) {
		for name := range parseDotenv(text, nil) {
			if name == "" {
				t.Fatalf("%q gives a value without a name", text)
			}
		}
	})
}
