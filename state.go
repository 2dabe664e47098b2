package chstate

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/chstate/chstate/internal/clickhouse"
	"github.com/chstate/chstate/internal/statedoc"
	"github.com/chstate/chstate/lock"
)

// State is what Meltano knows of one pipeline: the state of its last finished
// run, and the bookmarks that unfinished runs have moved since.
// (Meltano's MeltanoState.)
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
func (s State) IsComplete() bool { return !statedoc.Empty(s.Completed) }

// Merged gives the bookmarks that the next run starts from: the partial half
// merged onto the completed one, key by key, number literals as they are. It
// fails with ErrCorrupt where Meltano's own merge fails.
// (MeltanoState.json_merged)
func (s State) Merged() (json.RawMessage, error) {
	merged, err := statedoc.Merge(half(s.Partial), half(s.Completed))
	if err != nil {
		return nil, corrupt(s.ID, err)
	}
	return merged, nil
}

// Check says whether both halves are JSON objects, as all that reads a state
// expects; ErrCorrupt when they are not.
func (s State) Check() error {
	for _, h := range []struct {
		name string
		text []byte
	}{{"partial", s.Partial}, {"completed", s.Completed}} {
		if err := statedoc.Check(half(h.text)); err != nil {
			return corrupt(s.ID, fmt.Errorf("%s half: %w", h.name, err))
		}
	}
	return nil
}

// half gives the text of a half that may be missing.
func half(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	return text
}

func stateOf(row clickhouse.Row) State {
	return State{ID: row.ID, Partial: half(row.Partial), Completed: half(row.Completed), UpdatedAt: row.UpdatedAt.Time()}
}

// rowOf checks a state that is to be written and gives its row, without a version.
func rowOf(st State) (clickhouse.Row, error) {
	if err := checkID(st.ID); err != nil {
		return clickhouse.Row{}, err
	}
	row := clickhouse.Row{ID: st.ID}
	for _, h := range []struct {
		name string
		text []byte
		to   *[]byte
	}{{"partial", st.Partial, &row.Partial}, {"completed", st.Completed, &row.Completed}} {
		if statedoc.Empty(h.text) {
			continue
		}
		if err := statedoc.Check(h.text); err != nil {
			return clickhouse.Row{}, &Error{
				Kind: ErrInvalid, Op: fmt.Sprintf("write state %q", st.ID),
				Reason: fmt.Sprintf("its %s half is not usable: %v", h.name, err),
				Advice: "give each half as one JSON object; nothing was written", Err: err,
			}
		}
		*h.to = h.text
	}
	return row, nil
}

func checkID(id string) error {
	if id == "" {
		return &Error{Kind: ErrInvalid, Reason: "the state id is empty", Advice: "give the id that `chstate list` shows"}
	}
	if len(id) > clickhouse.MaxIDBytes {
		return &Error{
			Kind: ErrInvalid, Reason: fmt.Sprintf("the state id %.40q… has %d bytes; ids of up to %d bytes are kept", id, len(id), clickhouse.MaxIDBytes),
			Advice: "use a shorter state id or --state-id-suffix",
		}
	}
	return nil
}

func corrupt(id string, err error) error {
	return &Error{
		Kind: ErrCorrupt, Reason: fmt.Sprintf("the stored state %q is not usable: %v", id, err),
		Advice: "it was left as it is; go back to an earlier one with `chstate rollback`, write a good one with `chstate set`, or clear it", Err: err,
	}
}

// version gives a time as a row's version.
func version(t time.Time) lock.Millis { return lock.Millis(t.UnixMilli()) }
