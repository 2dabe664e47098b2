package clickhouse

import (
	"fmt"
	"strings"
)

// InitSQL gives the statements with which an administrator prepares the tables
// for one user: the schema, the tables and the grants, for ClickHouse 23.8 and
// newer. They can be run as printed, more than once.
func InitSQL(cfg Config) (string, error) {
	if cfg.Schema == "" || cfg.Table == "" {
		return "", &Error{Kind: Invalid, Reason: "schema and table must be named", Advice: "set schema and table"}
	}
	n := cfg.names()
	engine := cfg.engine("", false)
	grant, user := cfg.grantee()
	var b strings.Builder
	fmt.Fprintf(&b, "-- Tables of chstate. Run this as a user who may create and grant.\n")
	if cfg.User == "" {
		fmt.Fprintf(&b, "-- No account is named in the settings (user): put its name into the GRANTs, and take their dashes off.\n")
	} else {
		fmt.Fprintf(&b, "-- The account %s, the settings' user, is granted what it needs; the account has to be there.\n", user)
	}
	fmt.Fprintf(&b, "CREATE DATABASE IF NOT EXISTS %s%s;\n", quoteIdent(n.schema), n.cluster)
	for _, want := range cfg.wanted() {
		b.WriteString("\n" + want.layout.create(n, want.name, engine, nil, true) + ";\n")
	}
	fmt.Fprintf(&b, "\n-- Reading, writing and locking states.\n")
	for _, want := range cfg.wanted() {
		fmt.Fprintf(&b, "%s%s SELECT, INSERT ON %s TO %s;\n", grant, n.cluster, n.qualified(want.name), user)
	}
	if cfg.wantsCells() {
		fmt.Fprintf(&b, "\n-- The lock's log in Keeper (lock_strategy=keeper); the server needs keeper_map_path_prefix in its configuration.\n")
		fmt.Fprintf(&b, "%s;\n", n.createCells())
		fmt.Fprintf(&b, "%s%s SELECT, INSERT, ALTER UPDATE ON %s TO %s;\n", grant, n.cluster, n.qualified(n.cells()), user)
	}
	deleting := func(what, table string) {
		fmt.Fprintf(&b, "\n-- %s\n%s%s ALTER DELETE ON %s TO %s;\n", what, grant, n.cluster, table, user)
	}
	deleting("Deleting states (`chstate clear` and `move`, `meltano state clear`).", n.State())
	deleting("Taking back locks while the older plugin, meltano-state-backend-clickhouse, uses these tables, too.", n.Lock())
	if cfg.HistoryDays > 0 {
		deleting("Forgetting old versions (`chstate history prune`).", n.History())
	}
	if cfg.Cluster != "" {
		fmt.Fprintf(&b, "\n-- Only for a user who makes the tables himself: statements ON CLUSTER need this.\n-- GRANT CLUSTER ON *.* TO %s;\n", user)
	}
	return b.String(), nil
}

// grantee gives the verb and the account of a grant. Where the settings name
// no account, the grant is a comment.
func (cfg Config) grantee() (grant, user string) {
	if cfg.User == "" {
		return "-- GRANT", "`the user`"
	}
	return "GRANT", quoteIdent(cfg.User)
}
