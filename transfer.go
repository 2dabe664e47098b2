package chstate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/chstate/chstate/internal/statedoc"
)

// Exported is what Export wrote.
type Exported struct {
	States int
	// LeftOut says of each state that is not usable, and was left out, why.
	LeftOut []error
}

// Export writes the states whose ids match the glob pattern ("" for all) as
// Meltano's export format has them: one JSON object of {"completed": …,
// "partial": …} by state id, on one line. It holds a few states in memory at a
// time. After an error what was written is not a whole JSON text.
func (s *Store) Export(ctx context.Context, w io.Writer, pattern string) (Exported, error) {
	var (
		done Exported
		line []byte
		sep  = byte('{')
		out  = bufio.NewWriterSize(w, 64<<10)
	)
	for st, err := range s.All(ctx, pattern) {
		if err != nil {
			return done, err
		}
		line, err = statedoc.AppendEntry(append(line[:0], sep), statedoc.Entry{ID: st.ID, Completed: st.Completed, Partial: st.Partial})
		if err != nil {
			done.LeftOut = append(done.LeftOut, corrupt(st.ID, err))
			continue
		}
		if _, err := out.Write(line); err != nil {
			return done, writeError(err)
		}
		sep = ','
		done.States++
		s.progress(done.States, 0)
	}
	if done.States == 0 {
		_ = out.WriteByte('{') // Flush gives the error
	}
	_, _ = out.WriteString("}\n")
	if err := out.Flush(); err != nil {
		return done, writeError(err)
	}
	return done, nil
}

func writeError(err error) error { return fmt.Errorf("cannot write the export: %w", err) }

// ReadExport reads what Export, or Meltano's own export, wrote, and checks all
// of it; SetAll then imports it. Of several entries with one id
// the last counts, as in Python. The error is ErrInvalid; it names the entry.
func ReadExport(r io.Reader) ([]State, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("cannot read the export: %w", err)
	}
	text, err := statedoc.Decode(content)
	if err != nil {
		return nil, badExport(err, "save it as UTF-8 and try again; ")
	}
	var out []State
	place := map[string]int{}
	for e, err := range statedoc.Entries(text) {
		if err != nil {
			return nil, badExport(err, adviceOn(text))
		}
		st := State{ID: e.ID, Completed: e.Completed, Partial: e.Partial}
		if _, err := rowOf(st); err != nil {
			return nil, err
		}
		if i, ok := place[e.ID]; ok {
			out[i] = st
			continue
		}
		place[e.ID] = len(out)
		out = append(out, st)
	}
	if shape, err := statedoc.ShapeOf(text); err == nil && shape.Halves {
		return nil, badExport(errors.New("it has no ids, but the halves of one state"), adviceOn(text))
	}
	return out, nil
}

func badExport(err error, advice string) error {
	return &Error{
		Kind: ErrInvalid, Reason: fmt.Sprintf("this is no export of states: %v", err),
		Advice: advice + "nothing was written", Err: err,
	}
}

// adviceOn guesses what a text that is no export is instead.
func adviceOn(text []byte) string {
	if shape, err := statedoc.ShapeOf(text); err == nil && (shape.Wrapped || shape.Halves) {
		return `this is the state of one id: write it with "chstate set"; `
	}
	if first := bytes.TrimSpace(text); len(first) > 0 && first[0] != '{' && bytes.Contains(first, []byte("\n{")) {
		return "there are other lines before the JSON object, log lines perhaps: keep only the object; "
	}
	return `it must be one object of {"completed": {…}, "partial": {…}} by state id; `
}

// progress tells Options.Progress.
func (s *Store) progress(done, total int) {
	if s.opts.Progress != nil {
		s.opts.Progress(done, total)
	}
}
