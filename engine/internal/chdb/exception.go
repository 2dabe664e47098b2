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

// wrapped is the beginning of an error that the client part of libchdb packed
// into another one of the same code, ending and all.
var wrapped = regexp.MustCompile(`^Code: (\d+)\. DB::Exception: (Code: \d+\. DB::Exception: )`)

// versionPattern is what the packed error ends with.
var versionPattern = regexp.MustCompile(` \(version [^)]*\)`)

// unwrap leaves of a packed error the inner one.
func unwrap(text string) string {
	m := wrapped.FindStringSubmatchIndex(text)
	if m == nil {
		return text
	}
	text = text[m[4]:]
	if v := versionPattern.FindAllStringIndex(text, -1); v != nil {
		text = text[:v[len(v)-1][0]]
	}
	return text
}

// parseException reads code and name out of the engine's text,
// "Code: 60. DB::Exception: … (UNKNOWN_TABLE)".
func parseException(text string) *Exception {
	text = strings.TrimRight(strings.TrimPrefix(text, "Error: "), "\n ")
	text = unwrap(text)
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
