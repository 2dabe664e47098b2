package chdb

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	codePattern = regexp.MustCompile(`Code: (\d+)\.`)
	namePattern = regexp.MustCompile(`\(([A-Z][A-Z0-9_]+)\)\s*$`)
)

// unknownException is ClickHouse's code for what has none of its own.
const unknownException = 1002

// parseException reads code and name out of the engine's text,
// "Code: 60. DB::Exception: … (UNKNOWN_TABLE)".
func parseException(text string) *Exception {
	text = strings.TrimRight(strings.TrimPrefix(text, "Error: "), "\n ")
	e := &Exception{Code: unknownException, Name: "UNKNOWN_EXCEPTION", Text: text}
	if m := codePattern.FindStringSubmatch(text); m != nil {
		e.Code, _ = strconv.Atoi(m[1])
		if m := namePattern.FindStringSubmatch(text); m != nil {
			e.Name = m[1]
		}
		return e
	}
	e.Text = "Code: 1002. DB::Exception: " + text + " (UNKNOWN_EXCEPTION)"
	return e
}
