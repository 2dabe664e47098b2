package service

import (
	"encoding/json"
)

// Protocol is the number of the protocol described in the package
// documentation. It changes when an older caller would misunderstand.
const Protocol = 1

// hello is the first line out.
type hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
}

// request is every line in: which fields count depends on Op.
type request struct {
	ID uint64 `json:"id"`
	Op string `json:"op"`

	// init
	URI      string          `json:"uri"`
	Settings json.RawMessage `json:"settings"`
	Command  string          `json:"command"`
	LogLevel string          `json:"log_level"`

	StateID   string  `json:"state_id"`
	Hold      uint64  `json:"hold"`
	Partial   *string `json:"partial"`
	Completed *string `json:"completed"`
	Pattern   string  `json:"pattern"`

	// put, more, cancel
	Of     uint64      `json:"of"`
	States []wireState `json:"states"`
	Last   bool        `json:"last"`
}

// wireState is a state as it travels; a half that is empty is null.
type wireState struct {
	ID        string  `json:"id"`
	Partial   *string `json:"partial"`
	Completed *string `json:"completed"`
}

// answer is the one answer to a request: exactly one of OK, Error and Chunk.
type answer struct {
	ID    uint64   `json:"id"`
	OK    any      `json:"ok,omitempty"`
	Error *failure `json:"error,omitempty"`
	Chunk any      `json:"chunk,omitempty"`
}

// event is a message that nobody asked for.
type event struct {
	Event string   `json:"event"`
	Hold  uint64   `json:"hold"`
	Error *failure `json:"error"`
}

// The bodies of answers.
type (
	done     struct{}
	gotState struct {
		State    *wireState `json:"state"`
		Revision uint64     `json:"revision,omitempty"` // under a hold
	}
	gotHold struct {
		Hold     uint64 `json:"hold"`
		Revision uint64 `json:"revision,omitempty"`
	}
	wrote struct {
		Revision uint64 `json:"revision,omitempty"`
	}
	gotCount struct {
		Count int `json:"count"`
	}
)
