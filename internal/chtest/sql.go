package chtest

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Schema gives the name of a database that no other test uses. It is not made,
// and whatever was made under it is dropped when the test ends.
func Schema(t testing.TB) string {
	t.Helper()
	return SchemaOn(t, Target(t))
}

// SchemaOn is Schema for a server of the test's own.
func SchemaOn(t testing.TB, s Server) string {
	t.Helper()
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	name := "t_" + hex.EncodeToString(b)
	t.Cleanup(func() {
		if _, err := s.Do("DROP DATABASE IF EXISTS `" + name + "`"); err != nil {
			t.Logf("chtest: %v", err)
		}
	})
	return name
}

// SQL runs one statement by plain HTTP, past the code under test, and gives
// its answer (TabSeparated unless it says FORMAT) without the last newline.
func SQL(t testing.TB, statement string) string {
	t.Helper()
	return Target(t).SQL(t, statement)
}

// SQL runs one statement by plain HTTP and gives its answer without the last
// newline; an error fails the test.
func (s Server) SQL(t testing.TB, statement string) string {
	t.Helper()
	out, err := s.Do(statement)
	if err != nil {
		t.Fatalf("chtest: %v", err)
	}
	return out
}

// Do is SQL for those who want the error. Settings are "name=value".
func (s Server) Do(statement string, settings ...string) (string, error) {
	req, err := http.NewRequest(http.MethodPost, s.URL()+"/?"+strings.Join(settings, "&"), strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-ClickHouse-User", s.User)
	if s.Password != "" {
		req.Header.Set("X-ClickHouse-Key", s.Password)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", &refused{statement: statement, answer: strings.TrimSpace(string(body))}
	}
	return strings.TrimSuffix(string(body), "\n"), nil
}

type refused struct{ statement, answer string }

func (r *refused) Error() string {
	s := r.statement
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s + ": " + r.answer
}

// client trusts any certificate: the engines of tests make their own. It keeps
// no connection, so that goleak sees none.
var client = &http.Client{
	Timeout: 5 * time.Minute,
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // test certificates
	},
}
