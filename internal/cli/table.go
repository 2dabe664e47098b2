package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// writeTable writes rows for people, aligned, under their heads.
func writeTable(w io.Writer, heads []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(heads, "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = cell(text)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// printable quotes a text that would do something to a terminal, or to package
// tabwriter, to which the byte 0xFF is a sign.
func printable(text string) string {
	if strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
		return strconv.Quote(text)
	}
	return text
}

// cell makes a text fit a table: one line, of bounded length, "-" for nothing.
func cell(text string) string {
	const most = 200
	if text == "" {
		return "-"
	}
	text = printable(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// writeCSV writes rows under their names.
func writeCSV(w io.Writer, names []string, rows [][]string) error {
	c := csv.NewWriter(w)
	if err := c.Write(names); err != nil {
		return err
	}
	return c.WriteAll(rows)
}

// writeJSON writes a value for programs, indented.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// literal lets a piece of a state stand in our JSON: as it is, or as text where
// Python wrote what JSON does not have (NaN, Infinity).
func literal(text []byte) json.RawMessage {
	if text == nil || json.Valid(text) {
		return text
	}
	quoted, _ := json.Marshal(string(text)) // a string always can be
	return quoted
}

// The colours of a terminal.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// paint gives a function that colours text where results go to a terminal, and
// leaves it alone where they do not or NO_COLOR is set.
func (a *app) paint() func(colour, text string) string {
	if !isTerminal(a.stdout) || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string { return colour + text + plain }
}
