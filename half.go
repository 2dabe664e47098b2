package chstate

import (
	"bytes"
	"encoding/json"
)

// emptyHalf says whether a half holds nothing: absent, null, or an object without keys.
func emptyHalf(text json.RawMessage) bool {
	t := bytes.TrimSpace(text)
	if len(t) == 0 || string(t) == "null" {
		return true
	}
	return t[0] == '{' && len(bytes.TrimSpace(t[1:])) > 0 && bytes.TrimSpace(t[1:])[0] == '}'
}
