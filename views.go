package chstate

import (
	"context"

	"github.com/chstate/chstate/internal/clickhouse"
)

// MakeViews makes two views beside the state table, for SQL and dashboards, or
// makes them anew: <table>_current, the states, and <table>_bookmarks (state_id,
// stream, replication_key, value, updated_at), a row for each stream. What has
// such a name and is no view is left as it is; the error says so.
func (s *Store) MakeViews(ctx context.Context) error {
	return s.wrap(s.db.MakeViews(ctx), "make the views")
}

// ViewsSQL gives the statements that MakeViews would send, for an
// administrator, the account's GRANTs included. They come after those of InitSQL.
func ViewsSQL(o Options) (string, error) {
	o, err := o.checked()
	if err != nil {
		return "", err
	}
	return clickhouse.ViewsSQL(o.config()), nil
}
