package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// view is a view beside the state table, for SQL and dashboards.
type view struct {
	name, query string
}

// views are <table>_current, the states that show, and <table>_bookmarks, a row
// for each stream. They are written for ClickHouse 23.8 and newer. In a
// bookmark, what the partial half has takes the place of what the completed one
// has, name by name, as in the merge that Meltano does.
func (n names) views() []view {
	halves := "SELECT state_id, updated_at,\n" +
		"        JSONExtractKeysAndValuesRaw(ifNull(completed_state, ''), 'singer_state', 'bookmarks') AS completed,\n" +
		"        JSONExtractKeysAndValuesRaw(ifNull(partial_state, ''), 'singer_state', 'bookmarks') AS partial,\n" +
		"        arrayJoin(arrayDistinct(arrayConcat(completed.1, partial.1))) AS stream,\n" +
		"        completed.2[indexOf(completed.1, stream)] AS done,\n" +
		"        partial.2[indexOf(partial.1, stream)] AS underway\n" +
		"    FROM " + n.State() + " FINAL"
	text := func(json string) string {
		return "if(JSONType(" + json + ") = 'String', JSONExtractString(" + json + "), " + json + ")"
	}
	return []view{
		{n.state + "_current", "SELECT state_id, ifNull(completed_state, '{}') AS completed_state,\n" +
			"    ifNull(partial_state, '{}') AS partial_state, updated_at\nFROM " + n.State() + " FINAL"},
		{n.state + "_bookmarks", "SELECT state_id, stream, replication_key,\n" +
			"    " + text("literal") + " AS value, updated_at\n" +
			"FROM (SELECT state_id, updated_at, stream,\n" +
			"    JSONExtractString(if(JSONHas(underway, 'replication_key'), underway, done), 'replication_key') AS replication_key,\n" +
			"    multiIf(\n" +
			"        JSONHas(underway, 'replication_key_value'), JSONExtractRaw(underway, 'replication_key_value'),\n" +
			"        JSONHas(done, 'replication_key_value'), JSONExtractRaw(done, 'replication_key_value'),\n" +
			"        underway != '', underway, done) AS literal\n" +
			"FROM (" + halves + "))"},
	}
}

func (v view) create(n names, replace bool) string {
	verb := "CREATE VIEW IF NOT EXISTS "
	if replace {
		verb = "CREATE OR REPLACE VIEW "
	}
	return verb + n.qualified(v.name) + n.cluster + " AS\n" + v.query
}

// ViewsSQL gives the statements that make the views, and the grants to read them.
func ViewsSQL(cfg Config) string {
	n := cfg.names()
	grant, user := cfg.grantee()
	out := "\n-- Views for SQL and dashboards.\n"
	for _, v := range n.views() {
		out += v.create(n, false) + ";\n"
		out += fmt.Sprintf("%s%s SELECT ON %s TO %s;\n", grant, n.cluster, n.qualified(v.name), user)
	}
	return out
}

// MakeViews makes the views, or makes those anew that are there. It refuses to
// touch what has the name of a view and is none.
func (db *DB) MakeViews(ctx context.Context) error {
	s, err := db.ready(ctx)
	if err != nil {
		return err
	}
	for _, want := range db.names.views() {
		var v values
		text := "SELECT engine FROM system.tables WHERE database = " + v.text(db.names.schema) + " AND name = " + v.text(want.name)
		engines, err := collect(ctx, db, s, forRead, statement{text: text, args: v}, func(rows driver.Rows) (e string, err error) {
			err = rows.Scan(&e)
			return e, err
		})
		if err != nil {
			return err
		}
		if len(engines) > 0 && engines[0] != "View" {
			return &Error{
				Kind: Schema, Target: db.Target(),
				Reason: fmt.Sprintf("%s is there already, and is no view (its engine is %s)", db.names.plain(want.name), engines[0]),
				Advice: "rename it, or keep the states in another schema or table",
			}
		}
		if err := db.execute(ctx, s, forDDL, statement{text: want.create(db.names, len(engines) > 0)}); err != nil {
			return err
		}
	}
	return nil
}
