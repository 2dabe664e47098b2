package config

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// value is a setting's text, understood by its kind.
type value struct {
	text     string
	whole    int
	on       bool
	duration time.Duration
}

// badValue says what is wrong with a setting's value, and what to write.
type badValue struct{ reason, advice string }

var (
	wholeText   = regexp.MustCompile(`^\+?[0-9]+$`)
	secondsText = regexp.MustCompile(`^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)$`)
)

// parse understands the text of a value. Its texts are those of the Python
// parser, too (uri.py), and of the shared corpus.
func (s Setting) parse(text string) (value, *badValue) {
	v := value{text: text}
	switch s.Kind {
	case Switch:
		switch lowerASCII(strings.Trim(text, " \t")) {
		case "true", "1", "yes", "on":
			v.on, v.text = true, "true"
		case "false", "0", "no", "off":
			v.text = "false"
		default:
			return v, s.bad(text, "neither true nor false", "write true or false")
		}
	case Choice:
		v.text = lowerASCII(strings.Trim(text, " \t"))
		for _, c := range s.Choices {
			if v.text == c {
				return v, nil
			}
		}
		return v, s.bad(text, "not one of its values", "write "+oneOf(s.Choices))
	case Whole:
		v.text = strings.Trim(text, " \t")
		if !wholeText.MatchString(v.text) {
			return v, s.bad(text, "not a whole number", "write "+s.span())
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(v.text, "+"), 10, 63)
		if err != nil || float64(n) < s.Min || float64(n) > s.Max {
			return v, s.bad(text, "out of range", "write "+s.span())
		}
		v.whole = int(n)
		v.text = strconv.Itoa(v.whole)
	case Seconds:
		v.text = strings.Trim(text, " \t")
		if !secondsText.MatchString(v.text) {
			return v, s.bad(text, "not a number of seconds", "write "+s.span())
		}
		f, err := strconv.ParseFloat(v.text, 64)
		if err != nil || f < s.Min || f > s.Max {
			return v, s.bad(text, "out of range", "write "+s.span())
		}
		v.duration = time.Duration(math.Round(f * float64(time.Second)))
	default:
		if strings.ContainsFunc(text, isControl) && !s.Secret {
			return v, s.bad("", "text with a control character in it", "write it without")
		}
	}
	return v, nil
}

func (s Setting) bad(text, what, advice string) *badValue {
	if s.Secret || text == "" {
		return &badValue{"is " + what, advice}
	}
	return &badValue{fmt.Sprintf("is %s, %s", quote(text), what), advice}
}

// quote puts a value between quotation marks, cut short, and on one line.
func quote(text string) string {
	const longest = 40
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest]) + "…"
	}
	return `"` + strings.Map(func(r rune) rune {
		if isControl(r) || r == '"' {
			return '?'
		}
		return r
	}, text) + `"`
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// span says in words which numbers are taken.
func (s Setting) span() string {
	what := "a whole number"
	if s.Kind == Seconds {
		what = "a number of seconds"
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return fmt.Sprintf("%s from %s to %s, such as %s", what, number(s.Min), number(s.Max), s.Default)
}

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// textOf turns what JSON or YAML gave into the text that parse takes. given is
// false for null. Text is not guessed from what YAML took for something else
// (a password 1.50 or 0123 would come out changed).
func (s Setting) textOf(raw any) (text string, given bool, bad *badValue) {
	textual := s.Kind == Text || s.Kind == Path
	switch v := raw.(type) {
	case nil:
		return "", false, nil
	case string:
		return v, true, nil
	case bool:
		if textual {
			return "", true, s.bad("", "true or false where text belongs", "put it in quotes")
		}
		return strconv.FormatBool(v), true, nil
	case int:
		return strconv.Itoa(v), true, nil
	case int64:
		return strconv.FormatInt(v, 10), true, nil
	case json.Number:
		if textual && !wholeText.MatchString(v.String()) {
			return "", true, s.bad("", "a number where text belongs", "put it in quotes")
		}
		return v.String(), true, nil
	case float64:
		if textual && (v != math.Trunc(v) || math.Abs(v) >= 1<<53) {
			return "", true, s.bad("", "a number where text belongs", "put it in quotes")
		}
		return strconv.FormatFloat(v, 'f', -1, 64), true, nil
	case notText:
		if textual {
			return "", true, s.bad("", "a number where text belongs", "put it in quotes")
		}
		return v.written, true, nil
	default:
		return "", true, s.bad("", "a list or a mapping", "write one value")
	}
}
