package chstate

import (
	"encoding/json"
	"time"
)

// State is what Meltano knows of one pipeline: the state of its last finished
// run, and the bookmarks that unfinished runs have moved since.
type State struct {
	// ID is the state id, any non-empty text ("dev:tap-github-to-target-postgres").
	ID string
	// Partial and Completed are the two halves, each the text of one JSON
	// object, kept byte for byte as it was stored (key order, number literals,
	// spaces). An empty half is stored as NULL and read as "{}".
	Partial   json.RawMessage
	Completed json.RawMessage
	// UpdatedAt is the version of the stored row, in milliseconds of the
	// server's clock, in UTC. It is ignored on writing.
	UpdatedAt time.Time
}

// IsComplete says whether Meltano takes the state for a finished run's: its
// completed half has at least one key. (MeltanoState.is_complete)
func (s State) IsComplete() bool { return !emptyHalf(s.Completed) }
