// Package statedoc handles the text of a Singer state: the JSON objects that
// Meltano keeps as the two halves, partial and completed, of a pipeline's state.
//
// It never decodes a number and never re-encodes a string, so that key order,
// number literals (9007199254740993, 1.0, 1e400), escapes, and the NaN and
// Infinity that Python writes come out as they went in. Where Python's json
// module would decide something, its decision is taken: of duplicate keys the
// last value counts, at the place of the first.
package statedoc
