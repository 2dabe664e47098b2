package service

import (
	"context"
	"errors"
	"time"

	"github.com/chstate/chstate"
	"github.com/chstate/chstate/internal/config"
)

// failure is an error as it travels. The caller maps Code to an exception; the
// message alone says what was tried, what happened and what to do next.
type failure struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Holder  *holder `json:"holder,omitempty"`
}

// The codes; the Python side has one table for them.
const (
	codeLocked    = "locked"
	codeLockLost  = "lock_lost"
	codeConnect   = "connect"
	codeInvalid   = "invalid"
	codeCorrupt   = "corrupt"
	codeMissing   = "missing_settings"
	codeSettings  = "settings"
	codeServer    = "server"
	codeCancelled = "cancelled"
	codeProtocol  = "protocol"
	codeOther     = "other"
)

// holder says who holds a lock.
type holder struct {
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	User    string    `json:"user,omitempty"`
	Command string    `json:"command,omitempty"`
	Version string    `json:"tool_version,omitempty"`
	ClaimID string    `json:"claim_id,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Seen    time.Time `json:"seen,omitzero"`
	FreeAt  time.Time `json:"free_at,omitzero"`
}

// kinds gives the code for each kind of error that the library knows; the
// first that fits counts.
var kinds = []struct {
	kind error
	code string
}{
	{chstate.ErrLocked, codeLocked},
	{chstate.ErrLockLost, codeLockLost},
	{chstate.ErrConnect, codeConnect},
	{chstate.ErrInvalid, codeInvalid},
	{chstate.ErrCorrupt, codeCorrupt},
	{config.ErrMissing, codeMissing}, // before ErrSettings, which it is as well
	{chstate.ErrSettings, codeSettings},
	{chstate.ErrServer, codeServer},
	{chstate.ErrClosed, codeCancelled},
	{context.Canceled, codeCancelled},
}

// calledOff takes the place of Go's "context canceled". Who called a request off
// does not look at the answer, so it is for those that the program's own end cut short.
const calledOff = "called off: the chstate program of this process was told to end — whether a write that was under way is done is not known; run again"

func asFailure(err error) *failure {
	var own *failure
	if errors.As(err, &own) {
		return own
	}
	f := &failure{Code: codeOther, Message: err.Error()}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			f.Code = k.code
			break
		}
	}
	if told := (*chstate.Error)(nil); errors.Is(err, context.Canceled) && !errors.As(err, &told) {
		f.Message = calledOff
	}
	var locked *chstate.LockedError
	if errors.As(err, &locked) {
		h := locked.Holder
		f.Holder = &holder{
			Host: h.Host, PID: h.PID, User: h.User, Command: h.Command, Version: h.ToolVersion,
			ClaimID: locked.ClaimID, Since: locked.Since, Seen: locked.Seen, FreeAt: locked.FreeAt,
		}
	}
	return f
}

// Error makes a failure an error, so that one made here takes the same way as
// those of the library.
func (f *failure) Error() string { return f.Message }

func protocolError(message string) error {
	return &failure{Code: codeProtocol, Message: message + ": the add-on and its chstate program do not fit together; " +
		"reinstall meltano-state-backend-clickhouse, or unset CHSTATE_HELPER"}
}
