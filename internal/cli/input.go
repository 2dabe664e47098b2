package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/chstate/chstate/internal/statedoc"
)

// stateText gives the state that a command was given, either as the argument
// after the id or in a file.
func (a *app) stateText(args []string, file string, fileGiven bool) ([]byte, error) {
	if (len(args) == 1) == fileGiven {
		return nil, usageError{"give the state either as the argument STATE or with --input-file, and not both"}
	}
	if !fileGiven {
		return decodeState([]byte(args[0]), "the argument STATE")
	}
	if file == "-" {
		content, err := io.ReadAll(a.stdin)
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		return decodeState(content, "standard input")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError{fmt.Sprintf("cannot read the state: %v", err)}
	}
	return decodeState(content, file)
}

// decodeState takes off a byte order mark, and says of other encodings what to do.
func decodeState(content []byte, from string) ([]byte, error) {
	text, err := statedoc.Decode(content)
	if err != nil {
		return nil, refused("%s: %v — save it as UTF-8 and try again; the stored state was not changed", from, err)
	}
	return text, nil
}

// checkState says why a text is no state that Meltano could use. Without
// validate it only has to be one JSON object.
func checkState(text []byte, validate bool) (statedoc.Shape, error) {
	shape, err := statedoc.ShapeOf(text)
	if err != nil {
		return shape, refused("the state was not stored: %v%s", err, hint(err, text))
	}
	switch {
	case !validate || shape.Wrapped:
		return shape, nil
	case shape.Halves:
		return shape, refused(`the state was not stored: this is the stored shape, with the halves "completed" and "partial" — ` +
			`pass only the object under "completed" (Meltano's export format is read by meltano state import)`)
	case shape.Bare:
		return shape, refused(`the state was not stored: "bookmarks" stands at the top, where Meltano would not find it — ` +
			`wrap it as {"singer_state": {"bookmarks": …}}, or say --no-validate to store it as it is`)
	default:
		return shape, refused(`the state was not stored: there is no "singer_state" at the top, so Meltano would find no bookmarks in it — ` +
			`write {"singer_state": {…}}, or say --no-validate to store it as it is`)
	}
}

// hint guesses what happened to a text that is no JSON object.
func hint(err error, text []byte) string {
	var kind *statedoc.KindError
	if errors.As(err, &kind) && kind.Encoded {
		return " — pass the object inside the string"
	}
	var syntax *statedoc.SyntaxError
	if !errors.As(err, &syntax) {
		return ""
	}
	if first := bytes.TrimSpace(text); len(first) > 0 && first[0] != '{' && bytes.Contains(first, []byte("\n{")) {
		return " — there are other lines before the JSON object, log lines perhaps: keep only the object (meltano state get … 2>/dev/null)"
	}
	return ""
}
