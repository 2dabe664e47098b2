package cli

import (
	"regexp"
	"strings"
)

var (
	secretName = regexp.MustCompile(`(?i)pass|secret|token|api.?key|private.?key|credential|auth`)
	loginInURL = regexp.MustCompile(`://[^/@\s]*@`)
)

// shownCommand gives a command line as others may see it: bounded, with what
// may be a secret cut out.
func shownCommand(words []string) string {
	const most = 200
	shown := make([]string, len(words))
	secretNext := false
	for i, word := range words {
		name, _, hasValue := strings.Cut(word, "=")
		switch {
		case secretNext && !strings.HasPrefix(word, "-"):
			word = "***"
			secretNext = false
		case hasValue && secretName.MatchString(name):
			word = name + "=***"
			secretNext = false
		default:
			secretNext = strings.HasPrefix(word, "-") && secretName.MatchString(word)
			word = loginInURL.ReplaceAllString(word, "://***@")
		}
		shown[i] = word
	}
	line := []rune(strings.Join(shown, " "))
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}
