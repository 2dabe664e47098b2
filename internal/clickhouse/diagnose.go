package clickhouse

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// What follows looks at a server and its tables for people, without making or
// changing anything. Each look stands for itself, so that one which is refused
// does not hide the others.

// Reached is how the server was reached.
type Reached struct {
	Took  time.Duration // to connect, TLS included
	Via   string        // the proxy in between, then nothing else is known
	TLS   string        // "TLS 1.3", empty without TLS
	Until time.Time     // when the server's certificate ends
}

// Reach connects and says goodbye.
func (db *DB) Reach(ctx context.Context) (Reached, error) {
	r := Reached{Via: db.via()}
	if r.Via != "" {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(db.cfg.ConnectTimeout, time.Millisecond))
	defer cancel()
	began := time.Now()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", db.cfg.address())
	if err != nil {
		return r, db.explain(ctx, err)
	}
	defer conn.Close()
	if db.cfg.Secure {
		config, err := db.cfg.tlsConfig()
		if err != nil {
			return r, err
		}
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return r, db.explain(ctx, err)
		}
		state := secured.ConnectionState()
		r.TLS, r.Until = tls.VersionName(state.Version), state.PeerCertificates[0].NotAfter
	}
	r.Took = time.Since(began)
	return r, nil
}

// Overview is what the server says of itself and of the tables.
type Overview struct {
	Version   string
	TooOld    error // the version is one that we do not work with
	Cloud     bool
	Schema    bool // the schema exists
	Tables    []TableInfo
	Replaced  bool   // the lock table has the older plugin's layout, and is replaced at the first use
	Keeper    bool   // the lock's log is in Keeper
	Older     bool   // the lock table was the older plugin's, and may be used by it still
	Shared    bool   // the tables are ClickHouse Cloud's
	Replicas  bool   // the tables are replicated
	ReadOnly  string // the setting readonly, "0" where all may be changed
	StateName string // the state table as people write it
}

// TableInfo is one table that is needed.
type TableInfo struct {
	Name   string
	Exists bool
	Engine string
	Wrong  []string // in what it is not as it must be
}

// Overview looks at version, settings and tables.
func (db *DB) Overview(ctx context.Context) (Overview, error) {
	s, err := db.probe(ctx)
	if err != nil {
		return Overview{}, err
	}
	s.state = s.tables[db.names.state]
	o := Overview{
		Version: s.version, TooOld: db.checkVersion(s.version), Cloud: s.cloud(), Schema: s.engine != "",
		Replaced: oldLockLayout(s.tables[db.names.lock]), Shared: s.shared(), Replicas: s.replicated(),
		ReadOnly: s.known["readonly"].value, StateName: db.names.plain(db.names.state),
	}
	if cells := s.tables[db.names.cells()]; cells != nil && cells.engine == "KeeperMap" {
		o.Keeper = db.cfg.LockStrategy == strategyKeeper || db.cfg.LockStrategy == strategyAuto
	}
	if t := s.tables[db.names.lock]; t != nil {
		o.Older = t.shared()
	}
	for _, want := range db.wanted() {
		info := TableInfo{Name: db.names.plain(want.name)}
		if t := s.tables[want.name]; t != nil {
			info.Exists, info.Engine = true, t.engine
			if want.name != db.names.lock || !o.Replaced {
				info.Wrong = want.layout.check(t)
			}
		}
		o.Tables = append(o.Tables, info)
	}
	return o, nil
}

// Clock is the server's clock beside ours, and how long answers take.
type Clock struct {
	Ahead      time.Duration // how far the server's clock is ahead of ours
	Unsure     time.Duration // by how much Ahead may be wrong
	RoundTrips []time.Duration
}

const clockLooks = 7

// Clock asks for the time again and again.
func (db *DB) Clock(ctx context.Context) (Clock, error) {
	var c Clock
	for range clockLooks {
		began := time.Now()
		at, err := collect(ctx, db, nil, forProbe, statement{text: "SELECT toUnixTimestamp64Milli(now64(3))"}, func(rows driver.Rows) (ms int64, err error) {
			err = rows.Scan(&ms)
			return ms, err
		})
		if err != nil {
			return c, err
		}
		took := time.Since(began)
		c.RoundTrips = append(c.RoundTrips, took)
		if c.Unsure == 0 || took/2 < c.Unsure {
			c.Unsure = took / 2
			c.Ahead = time.UnixMilli(at[0]).Sub(began.Add(took / 2)).Round(time.Millisecond)
		}
	}
	slices.Sort(c.RoundTrips)
	return c, nil
}

// Answering tells apart who answers at the address.
type Answering struct {
	Servers []string // host names, each once
	Tables  int      // how many different state tables they have between them
}

const serverLooks = 8

// Answering opens some connections, which a load balancer spreads over what is behind it.
func (db *DB) Answering(ctx context.Context) (Answering, error) {
	var (
		mu      sync.Mutex
		servers = map[[2]string]bool{}
		tables  = map[string]bool{}
		group   errgroup.Group
		v       values
	)
	text := "SELECT hostName(), toString(serverUUID()), (SELECT toString(max(uuid)) FROM system.tables WHERE database = " +
		v.text(db.names.schema) + " AND name = " + v.text(db.names.state) + ")"
	for range serverLooks {
		group.Go(func() error {
			cfg := db.cfg
			cfg.Logger = db.log
			own, err := Open(cfg)
			if err != nil {
				return err
			}
			defer own.Close()
			type line struct{ host, server, table string }
			found, err := collect(ctx, own, nil, forProbe, statement{text: text, args: v}, func(rows driver.Rows) (l line, err error) {
				var table *string
				err = rows.Scan(&l.host, &l.server, &table)
				if table != nil {
					l.table = *table
				}
				return l, err
			})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			servers[[2]string{found[0].host, found[0].server}] = true
			tables[found[0].table] = true
			return nil
		})
	}
	err := group.Wait()
	var a Answering
	for s := range servers {
		a.Servers = append(a.Servers, s[0])
	}
	slices.Sort(a.Servers)
	a.Tables = len(tables)
	return a, err
}

// Right is a right that is needed for something.
type Right struct {
	Grant string // "INSERT ON meltano.state"
	For   string // what it is needed for
	Err   error  // why it is missing, nil when it is there
}

// Rights tries what an account needs on the tables that exist. Trying to INSERT
// means inserting no rows, which also shows an account that may not write.
func (db *DB) Rights(ctx context.Context) ([]Right, error) {
	s, err := db.probe(ctx)
	if err != nil {
		return nil, err
	}
	type try struct {
		right Right
		text  string
	}
	var tries []try
	for _, want := range db.wanted() {
		t := s.tables[want.name]
		if t == nil || len(want.layout.check(t)) > 0 {
			continue
		}
		table, plain := db.names.qualified(want.name), db.names.plain(want.name)
		var columns []string
		for _, c := range want.layout.columns {
			columns = append(columns, c.name)
		}
		list := strings.Join(columns, ", ")
		tries = append(tries,
			try{Right{Grant: "SELECT ON " + plain, For: "reading"}, "SELECT " + list + " FROM " + table + " WHERE 0"},
			try{Right{Grant: "INSERT ON " + plain, For: "writing"}, "INSERT INTO " + table + " (" + list + ") SELECT " + list + " FROM " + table + " WHERE 0"})
	}
	deletes := func(name, purpose string) {
		if s.tables[name] != nil {
			tries = append(tries, try{Right{Grant: "ALTER DELETE ON " + db.names.plain(name), For: purpose},
				"CHECK GRANT ALTER DELETE ON " + db.names.qualified(name)})
		}
	}
	deletes(db.names.state, "chstate clear and move")
	if s.tables[db.names.lock].shared() {
		deletes(db.names.lock, "the older plugin's sake, which waits for claims that are over")
	}
	if db.cfg.HistoryDays > 0 {
		deletes(db.names.history, "chstate history prune")
	}
	out := make([]Right, len(tries))
	var group errgroup.Group
	for i, t := range tries {
		group.Go(func() error {
			out[i] = t.right
			out[i].Err = db.try(ctx, t.text, t.right.Grant)
			return nil
		})
	}
	_ = group.Wait() // each keeps its own error
	return slices.DeleteFunc(out, func(r Right) bool { return errors.Is(r.Err, errNotSaid) }), nil
}

// errNotSaid: the server is too old to be asked.
var errNotSaid = errors.New("the server cannot say")

const codeSyntax = 62

func (db *DB) try(ctx context.Context, text, grant string) error {
	if !strings.HasPrefix(text, "CHECK GRANT") {
		return db.execute(ctx, nil, forProbe, statement{text: text})
	}
	granted, err := collect(ctx, db, nil, forProbe, statement{text: text}, func(rows driver.Rows) (ok uint8, err error) {
		err = rows.Scan(&ok)
		return ok, err
	})
	switch {
	case hasCode(err, codeSyntax):
		return errNotSaid
	case err != nil:
		return err
	case len(granted) == 0 || granted[0] == 0:
		return &Error{
			Kind: Denied, Target: db.Target(), Reason: fmt.Sprintf("user %q has no grant %s", db.cfg.User, grant),
			Advice: fmt.Sprintf("let an administrator run GRANT %s TO %s", grant, quoteIdent(db.cfg.User)),
		}
	}
	return nil
}

// Storage is what one table takes on the server.
type Storage struct {
	Table                string
	Rows, Bytes          uint64
	Parts, InactiveParts uint64
	Projections          bool
	Mutations            []string // that are not done, with what is wrong with them
}

// Storage looks at the tables' parts and unfinished mutations.
func (db *DB) Storage(ctx context.Context) ([]Storage, error) {
	var v values
	var list []string
	for _, want := range db.wanted() {
		list = append(list, v.text(want.name))
	}
	where := " WHERE database = " + v.text(db.names.schema) + " AND %s IN (" + strings.Join(list, ", ") + ")"
	text := "SELECT 'table' AS kind, name AS t, toUInt64(create_table_query ILIKE '%PROJECTION %') AS a, toUInt64(0) AS b, toUInt64(0) AS c, toUInt64(0) AS d, '' AS e" +
		" FROM system.tables" + fmt.Sprintf(where, "name") +
		" UNION ALL SELECT 'parts', table, sumIf(rows, active), sumIf(bytes_on_disk, active), countIf(active), countIf(NOT active), ''" +
		" FROM system.parts" + fmt.Sprintf(where, "table") + " GROUP BY table" +
		" UNION ALL SELECT 'mutation', table, 0, 0, 0, 0, concat(mutation_id, ' (', command, ')', if(latest_fail_reason = '', '', ': '), latest_fail_reason)" +
		" FROM system.mutations" + fmt.Sprintf(where, "table") + " AND NOT is_done"
	type line struct {
		kind, table string
		a, b, c, d  uint64
		e           string
	}
	lines, err := collect(ctx, db, nil, forProbe, statement{text: text, args: v}, func(rows driver.Rows) (l line, err error) {
		err = rows.Scan(&l.kind, &l.table, &l.a, &l.b, &l.c, &l.d, &l.e)
		return l, err
	})
	if err != nil {
		return nil, err
	}
	var out []Storage
	for _, want := range db.wanted() {
		st, there := Storage{Table: db.names.plain(want.name)}, false
		for _, l := range lines {
			if l.table != want.name {
				continue
			}
			switch l.kind {
			case "table":
				there, st.Projections = true, l.a != 0
			case "parts":
				st.Rows, st.Bytes, st.Parts, st.InactiveParts = l.a, l.b, l.c, l.d
			case "mutation":
				st.Mutations = append(st.Mutations, oneLine(l.e))
			}
		}
		if there {
			out = append(out, st)
		}
	}
	return out, nil
}

// Odd are states with which something is wrong, some of them by name.
type Odd struct {
	States     uint64
	Ephemeral  Some // ids that Meltano makes up, and never uses again
	NotObjects Some // rows of which a half is no JSON object
	Future     Some // rows that are dated later than the server's clock
	Misfits    Some // rows whose halves Meltano cannot merge
}

// Some is how many there are, and the ids of a few.
type Some struct {
	Count uint64
	IDs   []string
}

// notObject says of a half that it does not begin as a JSON object does. What
// is within it is not looked at: that would take the server long.
func notObject(column string) string {
	return "(" + column + " IS NOT NULL AND NOT match(" + column + `, '^[ \\t\\r\\n]*(\\{|null[ \\t\\r\\n]*$|$)'))`
}

// misfit says that the partial half has an object where the completed one has
// something else, at the two places where that happens.
func misfit() string {
	at := func(path string) string {
		return "JSONType(ifNull(partial_state, ''), " + path + ") = 'Object' AND JSONLength(ifNull(partial_state, ''), " + path + ") > 0" +
			" AND JSONHas(ifNull(completed_state, ''), " + path + ") AND JSONType(ifNull(completed_state, ''), " + path + ") != 'Object'"
	}
	return "partial_state IS NOT NULL AND completed_state IS NOT NULL AND (" + at("'singer_state'") + " OR " + at("'singer_state', 'bookmarks'") + ")"
}

// Odd looks through all states.
func (db *DB) Odd(ctx context.Context) (Odd, error) {
	some := func(condition string) string {
		return "countIf(" + condition + "), groupArrayIf(5)(state_id, " + condition + ")"
	}
	text := "SELECT count(), " + some(`match(state_id, '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:?\\d{2}.*--.+--')`) + ", " +
		some(notObject("completed_state")+" OR "+notObject("partial_state")) + ", " +
		some("updated_at > now64(3) + toIntervalSecond(60)") + ", " + some(misfit()) +
		" FROM " + db.names.State() + " FINAL"
	found, err := collect(ctx, db, nil, forProbe, statement{text: text}, func(rows driver.Rows) (o Odd, err error) {
		err = rows.Scan(&o.States, &o.Ephemeral.Count, &o.Ephemeral.IDs, &o.NotObjects.Count, &o.NotObjects.IDs, &o.Future.Count, &o.Future.IDs, &o.Misfits.Count, &o.Misfits.IDs)
		return o, err
	})
	if err != nil {
		return Odd{}, err
	}
	return found[0], nil
}
