package server

import (
	"errors"
	"net/http"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// ClickHouse's error codes that this program raises itself.
var (
	codeBadArguments      = errorCode{36, "BAD_ARGUMENTS"}
	codeNotImplemented    = errorCode{48, "NOT_IMPLEMENTED"}
	codeSyntax            = errorCode{62, "SYNTAX_ERROR"}
	codeUnknownQuery      = errorCode{78, "UNKNOWN_TYPE_OF_QUERY"}
	codeUnknownSetting    = errorCode{115, "UNKNOWN_SETTING"}
	codeReadOnly          = errorCode{164, "READONLY"}
	codeSameQueryID       = errorCode{216, "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING"}
	codeCannotDecompress  = errorCode{271, "CANNOT_DECOMPRESS"}
	codeCannotReadAllData = errorCode{33, "CANNOT_READ_ALL_DATA"}
	codeOutFile           = errorCode{358, "INTO_OUTFILE_NOT_ALLOWED"}
	codeNoSession         = errorCode{372, "SESSION_NOT_FOUND"}
	codeSessionLocked     = errorCode{373, "SESSION_IS_LOCKED"}
	codeSessionTimeout    = errorCode{374, "INVALID_SESSION_TIMEOUT"}
	codeAuthentication    = errorCode{516, "AUTHENTICATION_FAILED"}
	codeUnknown           = errorCode{1002, "UNKNOWN_EXCEPTION"}
)

type errorCode struct {
	code int
	name string
}

func (c errorCode) errorf(format string, args ...any) *chdb.Exception {
	return chdb.NewException(c.code, c.name, format, args...)
}

// asException makes an exception of any error.
func asException(err error) *chdb.Exception {
	var exception *chdb.Exception
	if errors.As(err, &exception) {
		return exception
	}
	return codeUnknown.errorf("%v", err)
}

// httpStatus is the status that ClickHouse answers with for an error code.
func httpStatus(code int) int {
	switch code {
	case 194: // REQUIRED_PASSWORD
		return http.StatusUnauthorized
	case 192, 193, 497, 516, 559: // unknown user, wrong password, access denied, authentication failed, role not granted
		return http.StatusForbidden
	case 6, 15, 16, 25, 26, 27, 36, 38, 41, 44, 53, 62, 72, 117, 167, 168, 223, 321, 427, 441, 675, 676, 376, 464:
		// What the client sent cannot be parsed or makes no sense.
		return http.StatusBadRequest
	case 46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 336, 511, 508: // unknown function, identifier, type, table …
		return http.StatusNotFound
	case 159: // TIMEOUT_EXCEEDED
		return http.StatusRequestTimeout
	case 381: // HTTP_LENGTH_REQUIRED
		return http.StatusLengthRequired
	case 37, 619: // QUERY_IS_TOO_LARGE
		return http.StatusRequestEntityTooLarge
	case 48: // NOT_IMPLEMENTED
		return http.StatusNotImplemented
	case 76, 209, 439: // CANNOT_OPEN_FILE, SOCKET_TIMEOUT, CANNOT_SCHEDULE_TASK
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
