package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chstate/chstate/internal/chtest"
	"github.com/chstate/chstate/internal/config"
	"github.com/chstate/chstate/internal/faultproxy"
)

// tool runs the tool within the test, on a schema of the test's own.
type tool struct {
	*testing.T
	schema string
	env    []string
	said   *string // stderr of the last run
}

// asTools is for where a tool hides its type's name.
func asTools(all ...tool) []tool { return all }

func newTool(t *testing.T) tool {
	return toolOn(t, chtest.Target(t), chtest.Schema(t))
}

func toolOn(t *testing.T, server chtest.Server, schema string) tool {
	return tool{t, schema, []string{
		"MELTANO_STATE_BACKEND_URI=" + server.URI("analytics"),
		"MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA=" + schema,
	}, new(string)}
}

// proxied gives the tool behind a proxy, and the proxy.
func proxied(t *testing.T) (tool, *faultproxy.Proxy) {
	t.Helper()
	target := chtest.Target(t)
	p := faultproxy.Start(target.URL())
	t.Cleanup(p.Close)
	target.Secure = false
	target.Host, target.Port = p.Address()
	return toolOn(t, target, chtest.Schema(t)), p
}

// with gives the tool with further settings, "name=value".
func (t tool) with(settings ...string) tool {
	t.env = slices.Clone(t.env)
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		i := slices.IndexFunc(config.Settings(), func(s config.Setting) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("%s is no setting", name)
		}
		t.env = append(t.env, config.Settings()[i].Env()+"="+value)
	}
	return t
}

// run gives what the tool printed; it must end with code.
func (t tool) run(code int, args ...string) string {
	t.Helper()
	return t.fed(code, "", args...)
}

// code gives the code that a run ends with.
func (t tool) code(args ...string) int {
	t.Helper()
	var stderr bytes.Buffer
	code := Main(t.Context(), args, t.env, strings.NewReader(""), io.Discard, &stderr)
	*t.said = stderr.String()
	return code
}

// fed is run with something on standard input.
func (t tool) fed(code int, stdin string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := Main(t.Context(), args, t.env, strings.NewReader(stdin), &stdout, &stderr); got != code {
		t.Errorf("chstate %.200q ended with code %d instead of %d: %.1000s", args, got, code, stderr.String())
	}
	*t.said = stderr.String()
	return stdout.String()
}

// refuses runs the tool, which has to end with code and to say one line that
// matches each of the patterns.
func (t tool) refuses(code int, patterns []string, args ...string) {
	t.Helper()
	t.run(code, args...)
	if n := strings.Count(*t.said, "\n"); n != 1 {
		t.Errorf("chstate %.200q said %d lines: %.1000s", args, n, *t.said)
	}
	t.says(patterns...)
}

// says checks what the last run said on stderr.
func (t tool) says(patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(*t.said) {
			t.Errorf("%q is not in: %.1000s", p, *t.said)
		}
	}
}

// sql runs a statement past the tool; $ stands for its schema.
func (t tool) sql(statement string) string {
	t.Helper()
	return chtest.SQL(t, strings.ReplaceAll(statement, "$", t.schema))
}

// unlocked checks that no claim was left behind.
func (t tool) unlocked() {
	t.Helper()
	if n := t.sql("SELECT count() FROM (SELECT lock_id, argMax(released, seq) AS r FROM $.state_lock WHERE lock_id LIKE '!%' GROUP BY lock_id) WHERE r = 0"); n != "0" {
		t.Errorf("%s claims are left", n)
	}
}

func caseFile(name string) string { return "testdata/cases/" + name }

func caseText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(caseFile(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readCase(t *testing.T, name string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(caseText(t, name)), to); err != nil {
		t.Fatal(err)
	}
}

// compact takes the spaces out of a JSON text, and nothing else.
func compact(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func uriOf(server chtest.Server, query string) string {
	return fmt.Sprintf("clickhouse://%s:%s@%s/analytics?%s", url.PathEscape(server.User), url.PathEscape(server.Password),
		strings.TrimPrefix(strings.TrimPrefix(server.URL(), "http://"), "https://"), query)
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// quiet swallows what net/http says of failed TLS connections.
var quiet = log.New(io.Discard, "", 0)
