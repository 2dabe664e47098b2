package chstate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chstate/chstate/internal/statedoc"
)

// Bookmark is what a state knows of one stream, as far as taps agree on how to
// write it.
type Bookmark struct {
	Stream string
	// Key is the replication key, "" where the state does not name it.
	Key string
	// Value is where the stream got to, as JSON; the whole bookmark where it is of
	// no known form, nil where there is none. Of a bookmark in partitions it is the greatest.
	Value json.RawMessage
	// Partitions is how many partitions the bookmark has, 0 for none.
	Partitions int
}

// Bookmarks gives the bookmarks that the next run starts from, in the state's
// order. It fails with ErrCorrupt where Merged does.
func (s State) Bookmarks() ([]Bookmark, error) {
	merged, err := s.Merged()
	if err != nil {
		return nil, err
	}
	found, err := statedoc.Bookmarks(merged)
	if err != nil {
		return nil, corrupt(s.ID, err)
	}
	out := make([]Bookmark, len(found))
	for i, b := range found {
		out[i] = Bookmark{Stream: b.Stream, Key: b.Key, Value: b.Value, Partitions: b.Partitions}
	}
	return out, nil
}

// Time gives the value where it is a time: text that begins with a date, in
// UTC unless it says otherwise. Numbers are never taken for times.
func (b Bookmark) Time() (time.Time, bool) {
	var text string
	if json.Unmarshal(b.Value, &text) != nil {
		return time.Time{}, false
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", time.DateOnly,
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// Change is one place in which two states differ.
type Change struct {
	// Stream is the stream whose bookmark it is in, "" outside of the bookmarks.
	Stream string
	// Path is the place within the bookmark, "" for the whole of it; outside of
	// the bookmarks it begins at the top of the state.
	Path string
	// Old and New are the values; nil where there was none or is none.
	Old, New json.RawMessage
}

// Diff gives what differs between what two states' next runs start from, by
// stream and bookmark. The order of names, spaces and the spelling of strings
// make no difference; number literals do. It fails with ErrCorrupt where Merged does.
func Diff(old, now State) ([]Change, error) {
	before, err := old.Merged()
	if err != nil {
		return nil, err
	}
	after, err := now.Merged()
	if err != nil {
		return nil, err
	}
	found, err := statedoc.Diff(before, after)
	if err != nil {
		return nil, corrupt(now.ID, err)
	}
	out := make([]Change, len(found))
	for i, c := range found {
		out[i] = Change{Stream: c.Stream, Path: c.Path, Old: c.Old, New: c.New}
	}
	return out, nil
}

// Now gives the server's clock, by which states are dated.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, _, err := s.db.Versions(ctx)
	return now.Time(), s.wrap(err, "ask for the time")
}

// Dated is a state id with when its state was written.
type Dated struct {
	ID        string
	UpdatedAt time.Time
	Age       time.Duration // by the server's clock
}

// Ages gives the states whose ids match the glob pattern, in order of their
// ids, without reading the states themselves.
func (s *Store) Ages(ctx context.Context, pattern string) ([]Dated, error) {
	var ids []string
	for id, err := range s.IDs(ctx, pattern) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	now, newest, err := s.db.Versions(ctx, ids...)
	if err != nil {
		return nil, s.wrap(err, "read the ages of states")
	}
	out := make([]Dated, 0, len(ids))
	for _, id := range ids {
		if at, ok := newest[id]; ok { // not cleared meanwhile
			out = append(out, Dated{ID: id, UpdatedAt: at.Time(), Age: time.Duration(now-at) * time.Millisecond})
		}
	}
	return out, nil
}
