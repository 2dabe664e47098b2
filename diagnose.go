package chstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chstate/chstate/internal/clickhouse"
)

// Level says how a finding is to be taken.
type Level string

const (
	OK   Level = "ok"
	Warn Level = "warn" // works, but see to it
	Fail Level = "fail" // does not work, or does not keep what is promised
)

// Finding is what Diagnose has to say of one matter.
type Finding struct {
	Check  string `json:"check"` // "reach", "grants", …
	Level  Level  `json:"level"`
	Detail string `json:"detail"`           // what was found, one line
	Advice string `json:"advice,omitempty"` // what to do about it
	Err    error  `json:"-"`                // the failure, where it was one
}

// Diagnose looks at everything that the store needs and says of each matter
// whether it is well and, where not, what to do. It makes and changes nothing,
// missing tables neither, does not retry, and takes well under a second where the server answers at once.
func (s *Store) Diagnose(ctx context.Context) []Finding {
	cfg := s.opts.config()
	cfg.CreateTables, cfg.RetryFor = false, 0
	db, err := clickhouse.Open(cfg)
	if err != nil {
		return []Finding{{Check: "settings", Level: Fail, Detail: err.Error(), Err: s.wrap(err, "use the settings")}}
	}
	defer db.Close()
	d := doctor{s: s, db: db}

	overview, err := db.Overview(ctx)
	if err != nil {
		return []Finding{d.unreachable(err)}
	}
	// Everything else at once; each has its place in the report.
	looks := []func(context.Context) []Finding{
		d.reach,
		func(context.Context) []Finding { return d.server(overview) },
		d.rights,
		func(context.Context) []Finding { return d.tables(overview) },
		func(ctx context.Context) []Finding { return d.exclusion(ctx, overview) },
		d.clock, d.storage,
		func(ctx context.Context) []Finding { return d.odd(ctx, overview) },
	}
	found := make([][]Finding, len(looks))
	var group errgroup.Group
	for i, look := range looks {
		group.Go(func() error {
			found[i] = look(ctx)
			return nil
		})
	}
	_ = group.Wait() // each keeps its own error
	var out []Finding
	for _, f := range found {
		out = append(out, f...)
	}
	return out
}

type doctor struct {
	s  *Store
	db *clickhouse.DB
}

func ok(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: OK, Detail: fmt.Sprintf(format, args...)}
}

func (f Finding) because(level Level, advice string) Finding {
	f.Level, f.Advice = level, advice
	return f
}

// failed is a look that did not work.
func (d doctor) failed(check string, level Level, err error) Finding {
	f := Finding{Check: check, Level: level, Detail: err.Error(), Err: d.s.wrap(err, "look at %s", check)}
	var e *clickhouse.Error
	if errors.As(err, &e) {
		f.Detail, f.Advice = e.Reason, e.Advice
	}
	return f
}

func (d doctor) unreachable(err error) Finding {
	check := "reach"
	var e *clickhouse.Error
	if errors.As(err, &e) {
		switch e.Kind {
		case clickhouse.Login:
			check = "login"
		case clickhouse.Connect:
		default:
			check = "server"
		}
	}
	f := d.failed(check, Fail, err)
	f.Detail = d.db.Target() + ": " + f.Detail
	return f
}

// soon is how long before its end a certificate is worth a word.
const soon = 21 * 24 * time.Hour

func (d doctor) reach(ctx context.Context) []Finding {
	r, err := d.db.Reach(ctx)
	if err != nil { // though a statement was answered a moment ago
		return []Finding{d.failed("reach", Warn, err)}
	}
	login := ok("login", "as user %q", d.s.opts.User)
	if d.s.opts.AccessToken != "" {
		login = ok("login", "with an access token")
	}
	if r.Via != "" {
		return []Finding{ok("reach", "%s answers, through the proxy %s", d.db.Target(), r.Via), login}
	}
	out := []Finding{ok("reach", "%s, connected in %s", d.db.Target(), short(r.Took))}
	switch {
	case r.TLS == "" && !d.s.opts.local():
		out = append(out, ok("tls", "not in use: passwords and states travel in the clear").
			because(Warn, "set secure=true where the server listens for TLS"))
	case r.TLS == "":
		out = append(out, ok("tls", "not in use, on this machine"))
	case d.s.opts.TLS.SkipVerify:
		out = append(out, ok("tls", "%s, but any certificate is taken", r.TLS).because(Warn, "set verify=true, and ca_cert where the certificate is your own"))
	case time.Until(r.Until) < soon:
		out = append(out, ok("tls", "%s, but the certificate ends on %s", r.TLS, r.Until.UTC().Format(time.DateOnly)).because(Warn, "renew the server's certificate"))
	default:
		out = append(out, ok("tls", "%s, the certificate is good until %s", r.TLS, r.Until.UTC().Format(time.DateOnly)))
	}
	return append(out, login)
}

func (o Options) local() bool {
	return o.Host == "localhost" || o.Host == "::1" || o.Host == "[::1]" || strings.HasPrefix(o.Host, "127.")
}

func (d doctor) server(o clickhouse.Overview) []Finding {
	if o.TooOld != nil {
		return []Finding{d.failed("server", Fail, o.TooOld)}
	}
	where := ""
	if o.Cloud {
		where = " on ClickHouse Cloud"
	}
	f := ok("server", "ClickHouse %s%s", o.Version, where)
	if o.ReadOnly != "0" && o.ReadOnly != "" {
		return []Finding{f, ok("settings", "the account is in readonly mode %s", o.ReadOnly).
			because(Warn, "reading works; for writing, let an administrator set readonly=0 in the user's profile")}
	}
	return []Finding{f}
}

func (d doctor) rights(ctx context.Context) []Finding {
	rights, err := d.db.Rights(ctx)
	if err != nil {
		return []Finding{d.failed("grants", Warn, err)}
	}
	var out []Finding
	var held []string
	for _, r := range rights {
		if r.Err == nil {
			held = append(held, r.Grant)
			continue
		}
		f := d.failed("grants", Fail, r.Err)
		if strings.HasPrefix(r.Grant, "ALTER DELETE") {
			f.Level = Warn // runs do without it
		}
		f.Detail = fmt.Sprintf("%s (for %s) is missing: %s", r.Grant, r.For, f.Detail)
		out = append(out, f)
	}
	if len(out) == 0 && len(held) > 0 {
		out = append(out, ok("grants", "%s", strings.Join(held, ", ")))
	}
	return out
}

func (d doctor) tables(o clickhouse.Overview) []Finding {
	var out []Finding
	for _, t := range o.Tables {
		switch {
		case !t.Exists && d.s.opts.CreateTables == "never":
			out = append(out, ok("tables", "%s does not exist, or may not be seen", t.Name).
				because(Fail, "let an administrator run what `chstate init --print-sql` prints"))
		case !t.Exists:
			out = append(out, ok("tables", "%s does not exist yet", t.Name).
				because(Warn, "the first write makes it; `chstate init` does so now"))
		case len(t.Wrong) > 0:
			out = append(out, ok("tables", "%s is not what it must be: %s", t.Name, strings.Join(t.Wrong, "; ")).
				because(Fail, "name another table or schema, or rename that one and let it be made anew"))
		default:
			out = append(out, ok("tables", "%s, %s", t.Name, t.Engine))
		}
	}
	if o.Replaced {
		out = append(out, ok("tables", "the lock table has the older plugin's layout").
			because(Warn, "the first write replaces it, `chstate init` does so now; processes of the older plugin go on working"))
	}
	if o.Older {
		out = append(out, ok("tables", "the lock table was the older plugin's: claims that are over are deleted from it, for that plugin's sake; "+
			"when nobody uses it any more, ALTER TABLE `%s`.`%s_lock` MODIFY COMMENT '' ends that", d.s.opts.Schema, d.s.opts.Table))
	}
	if db := d.s.opts.Database; db != "" && db != d.s.opts.Schema {
		out = append(out, ok("tables", "they are in the schema %s; the database %s of the settings is only named, as it always was", d.s.opts.Schema, db))
	}
	return out
}

// exclusion is about what the lock rests on.
func (d doctor) exclusion(ctx context.Context, o clickhouse.Overview) []Finding {
	strategy := d.s.opts.Lock.Strategy
	lease := d.s.opts.Lock.Lease
	var how string
	switch {
	case strategy == "settle":
		how = fmt.Sprintf("settle: each claim waits %s before it looks", d.s.opts.Lock.Settle)
	case o.Keeper:
		how = "keeper: a KeeperMap table, in which one of two claims fails"
	case strategy == "keeper":
		how = "keeper, whose KeeperMap table does not exist yet"
	case o.Shared:
		how = "table: ClickHouse Cloud, read with sequential consistency"
	case o.Replicas:
		how = "table: replicated tables, written with a quorum and read with sequential consistency"
	default:
		how = "table: one server's own table shows each claim to everybody at once"
	}
	out := []Finding{ok("lock", "strategy %s (lock_strategy=%s), lease %s", how, strategy, lease)}
	switch {
	case strategy == "keeper" && !o.Keeper && d.s.opts.CreateTables == "never":
		out[0] = out[0].because(Fail, "let an administrator run what `chstate init --print-sql` prints, or use lock_strategy=table")
	case strategy == "keeper" && !o.Keeper:
		out[0] = out[0].because(Warn, "the first write makes it, where the server has a keeper_map_path_prefix; `chstate init` does so now")
	case strategy == "settle":
		out[0] = out[0].because(Warn, "exclusion rests on the replicas' lag being shorter than that; prefer lock_strategy=auto")
	}
	a, err := d.db.Answering(ctx)
	switch {
	case err != nil:
		out = append(out, d.failed("replicas", Warn, err))
	case o.Shared || o.Replicas:
		out = append(out, ok("replicas", "answering: %s", strings.Join(a.Servers, ", ")))
	case a.Tables > 1:
		out = append(out, ok("replicas", "several servers answer at this address (%s), each with its own %s: neither states nor locks are shared",
			strings.Join(a.Servers, ", "), o.StateName).because(Fail, "name one server, or make the tables replicated (settings cluster or engine)"))
	case len(a.Servers) > 1:
		out = append(out, ok("replicas", "several servers answer at this address (%s), and the tables are not replicated",
			strings.Join(a.Servers, ", ")).because(Fail, "name one server, or make the tables replicated (settings cluster or engine)"))
	default:
		out = append(out, ok("replicas", "one server answers: %s", strings.Join(a.Servers, ", ")))
	}
	return out
}

const (
	clockLimit = 5 * time.Second
	slowAnswer = 500 * time.Millisecond
)

func (d doctor) clock(ctx context.Context) []Finding {
	c, err := d.db.Clock(ctx)
	if err != nil {
		return []Finding{d.failed("clock", Warn, err)}
	}
	direction := "ahead of"
	if c.Ahead < 0 {
		direction = "behind"
	}
	clock := ok("clock", "the server's is %s %s ours (±%s)", short(c.Ahead.Abs()), direction, short(c.Unsure))
	if c.Ahead.Abs() > clockLimit {
		clock = clock.because(Warn, "no lock and no state depends on it, but ages and times shown do: set the clocks by NTP")
	}
	median, longest := c.RoundTrips[len(c.RoundTrips)/2], c.RoundTrips[len(c.RoundTrips)-1]
	trips := ok("answers", "within %s, the slowest of %d within %s", short(median), len(c.RoundTrips), short(longest))
	if median > slowAnswer || longest > d.s.opts.Lock.Lease/5 {
		trips = trips.because(Warn, "a claim needs a few of them within its lease: raise lock_timeout_seconds, or run nearer to the server")
	}
	return []Finding{clock, trips}
}

const (
	manyParts = 100
	// Rows that wait for a merge are read by FINAL each time.
	staleBytes = 256 << 20
)

func (d doctor) storage(ctx context.Context) []Finding {
	tables, err := d.db.Storage(ctx)
	if err != nil {
		return []Finding{d.failed("storage", Warn, err)}
	}
	var out []Finding
	for _, t := range tables {
		f := ok("storage", "%s: %d rows in %d parts (and %d that were merged), %s", t.Table, t.Rows, t.Parts, t.InactiveParts, bytesText(t.Bytes))
		switch {
		case t.Parts > manyParts:
			f = f.because(Warn, "inserts come faster than merges: see system.merges, and whether background merges were stopped")
		case t.Bytes > staleBytes && t.Parts > 1:
			f = f.because(Warn, "where that is much more than the states themselves, OPTIMIZE TABLE "+t.Table+" FINAL drops what was replaced")
		}
		out = append(out, f)
		if t.Projections {
			out = append(out, ok("storage", "%s has a projection", t.Table).because(Warn, "some servers refuse to delete from it (code 344): drop the projection"))
		}
		for _, m := range t.Mutations {
			out = append(out, ok("mutations", "%s: %s is unfinished", t.Table, m).
				because(Warn, "later deletes wait behind it; KILL MUTATION ends one that fails"))
		}
	}
	return out
}

// oddLimit bounds the look through all states.
const oddLimit = 700 * time.Millisecond

func (d doctor) odd(ctx context.Context, o clickhouse.Overview) []Finding {
	if t := o.Tables[0]; !t.Exists || len(t.Wrong) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, oddLimit)
	defer cancel()
	odd, err := d.db.Odd(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return []Finding{ok("states", "they could not all be looked through within %s", oddLimit).because(Warn, "`chstate list --long` looks at each of them")}
	}
	if err != nil {
		return []Finding{d.failed("states", Warn, err)}
	}
	out := []Finding{ok("states", "%d", odd.States)}
	add := func(some clickhouse.Some, level Level, what, advice string) {
		if some.Count == 0 {
			return
		}
		ids := make([]string, len(some.IDs))
		for i, id := range some.IDs {
			ids[i] = fmt.Sprintf("%q", id)
		}
		list := strings.Join(ids, ", ")
		if some.Count > uint64(len(ids)) {
			list += ", …"
		}
		out = append(out, ok("states", "%d %s: %s", some.Count, what, list).because(level, advice))
	}
	add(odd.NotObjects, Fail, "with a half that is no JSON object", "Meltano cannot use them: write good ones with `chstate set`, roll back, or clear them")
	add(odd.Misfits, Fail, "whose halves do not fit together", "Meltano cannot merge them: go back to an earlier one with `chstate rollback`, or write a good one with `chstate set`")
	add(odd.Ephemeral, Warn, "under an id made of the time, which no later run reads", "give `meltano el` a --state-id; clear those that are there")
	add(odd.Future, Warn, "dated later than the server's clock", "writes go on above that date, and nothing is hidden; see whether a clock was wrong")
	return out
}

// short rounds a duration for reading.
func short(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}

// bytesText gives a size for reading.
func bytesText(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}
