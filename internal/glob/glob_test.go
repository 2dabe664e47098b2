package glob

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// corpus is what testdata/corpus.py asked Python's fnmatch.
type corpus struct {
	Texts    []string
	Patterns []answer
}

// answer is a pattern and the places in Texts that it matches.
type answer struct {
	pattern string
	hits    []int
}

func (a *answer) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&a.pattern, &a.hits})
}

func load(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func TestSameAnswersAsPython(t *testing.T) {
	var c corpus
	load(t, "fnmatch.json", &c)
	if len(c.Patterns) < 1000 || len(c.Texts) < 50 {
		t.Fatalf("the corpus is small: %d patterns, %d texts", len(c.Patterns), len(c.Texts))
	}
	for _, a := range c.Patterns {
		if a.pattern == "" {
			continue // means "all" here
		}
		p := Compile(a.pattern)
		re, err := regexp.Compile(p.RE2())
		if err != nil {
			t.Errorf("%q becomes %q: %v", a.pattern, p.RE2(), err)
			continue
		}
		literal, isLiteral := p.Literal()
		prefix, isPrefix := p.Prefix()
		for i, text := range c.Texts {
			want := slices.Contains(a.hits, i)
			if got := p.Match(text); got != want {
				t.Errorf("Match(%q, %q) = %t, Python says %t", a.pattern, text, got, want)
			}
			if got := re.MatchString(text); got != want {
				t.Errorf("%q as %q on %q gives %t, Python says %t", a.pattern, p.RE2(), text, got, want)
			}
			if isLiteral && (literal == text) != want {
				t.Errorf("%q is taken for the text %q", a.pattern, literal)
			}
			if isPrefix && strings.HasPrefix(text, prefix) != want {
				t.Errorf("%q is taken for the prefix %q", a.pattern, prefix)
			}
			if want && !strings.HasPrefix(text, prefix) {
				t.Errorf("%q matches %q, which does not begin with %q", a.pattern, text, prefix)
			}
		}
	}
}

// TestI03 is the field case I03: _ % \ are no wildcards, * and ? are.
func TestI03(t *testing.T) {
	var ids []string
	load(t, "state_ids.json", &ids)
	var cases []answerText
	load(t, "patterns_expected.json", &cases)
	for _, c := range cases {
		ids = append(ids, c.ids...) // one of them is not among the state ids
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, c := range cases {
		var got []string
		for _, id := range ids {
			if Match(c.pattern, id) {
				got = append(got, id)
			}
		}
		slices.Sort(got)
		slices.Sort(c.ids)
		if !slices.Equal(got, c.ids) {
			t.Errorf("%q matches %.60q, want %.60q", c.pattern, got, c.ids)
		}
	}
}

type answerText struct {
	pattern string
	ids     []string
}

func (a *answerText) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&a.pattern, &a.ids})
}

func TestInvalidUTF8IsItself(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"?", "\xff", true},
		{"??", "\xff\xfe", true},
		{"?", "\xff\xfe", false},
		{"\xff", "\xff", true},
		{"\xff", "\xfe", false},
		{"\xff", "\ufffd", false},
		{"\ufffd", "\xff", false},
		{"[\xff]", "\xff", true},
		{"[!\xff]", "\xfe", true},
		{"[!\xff]", "\xff", false},
		{"[a-\xff]", "é", true},
		{"*\xff", "a\xff", true},
		{"\xe2\x82*", "\xe2\x82\xac", false}, // half of a € is no character of it
	} {
		if got := Match(c.pattern, c.text); got != c.want {
			t.Errorf("Match(%q, %q) = %t", c.pattern, c.text, got)
		}
	}
	if !Match("", "anything") || !Match("*", "") || !Compile("**").Any() || Compile("?*").Any() {
		t.Error("the patterns for everything are not taken for that")
	}
}

// FuzzMatch holds Match, RE2 and the shortcuts against each other.
func FuzzMatch(f *testing.F) {
	f.Add("dev:*[!a-c]?", "dev:tap-d")
	f.Add("[b-a", "[b-a")
	f.Add("[]-a]\xff*", "]\xff")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 100 || len(text) > 200 {
			return // Go's regexp is slow on these, and says nothing new
		}
		p := Compile(pattern)
		got := p.Match(text)
		re, err := regexp.Compile(p.RE2())
		if err != nil {
			t.Fatalf("%q becomes %q: %v", pattern, p.RE2(), err)
		}
		if utf8.ValidString(text) && re.MatchString(text) != got {
			t.Errorf("%q on %q: Match says %t, %q does not", pattern, text, got, p.RE2())
		}
		if literal, ok := p.Literal(); ok && (literal == text) != got {
			t.Errorf("%q on %q: Match says %t, the literal %q does not", pattern, text, got, literal)
		}
		prefix, all := p.Prefix()
		if got && !strings.HasPrefix(text, prefix) || all && strings.HasPrefix(text, prefix) != got {
			t.Errorf("%q on %q: Match says %t, the prefix %q does not", pattern, text, got, prefix)
		}
		if p.Any() && !got {
			t.Errorf("%q is for everything, but not for %q", pattern, text)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	p := Compile("*a*a*a*a*b")
	text := strings.Repeat("a", 200)
	for b.Loop() {
		p.Match(text)
	}
}
