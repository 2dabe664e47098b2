package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chstate/chstate/internal/lockrules"
	"github.com/chstate/chstate/lock"
)

// books keep account of who held when and wrote what, and notice when a
// promise is broken. They see everything and tell the lock nothing.
type books struct {
	w *world

	mu      sync.Mutex
	looks   map[*lock.Row]look // the look that gave these rows
	leases  []*lease
	reads   []read
	writes  []*write        // acknowledged
	forward []time.Duration // when the server's clock was set forward by so much that leases look over
	claims  map[string]*claim
	killed  *lease // held by a process that was killed in the calm, nobody acquired since
	killAt  time.Duration

	violations []string
	acquired   int
	marked     map[string]bool
}

// lease is a claim that was acquired. Its number is that of its winning look,
// which the simulation counts itself: it says which of two is older, whatever
// the clocks and the versions say.
type lease struct {
	number   int
	id       string
	by       *process
	since    time.Duration // not later than its announcement
	deadline time.Duration // by the process's clock
	ended    bool
}

func (l *lease) String() string { return fmt.Sprintf("hold %d of %s", l.number, l.by) }

// alive says whether the holder may believe that it holds.
func (l *lease) alive(at time.Duration) bool {
	return !l.ended && !l.by.isDead() && l.by.clockAt(at) < l.deadline
}

// look is a Read of the log.
type look struct {
	number int
	at     time.Duration
}

// write is a write or a delete under a lease.
type write struct {
	lease   *lease
	n       int
	version lock.Millis
}

func (w *write) String() string {
	if w == nil {
		return "a write without the lock"
	}
	return fmt.Sprintf("write %d of %s", w.n, w.lease)
}

// read is a read of the state under a lease.
type read struct {
	lease *lease
	saw   lock.Millis
	at    time.Duration
}

// claim is what the log's rows tell of a claim.
type claim struct {
	by     *process
	first  time.Duration // when its first row was sent
	ticket time.Duration // when its first ticket was stored
	queued time.Duration // when its last ticket was
	last   time.Duration // when its last announcement or renewal was
	over   bool
}

func newBooks(w *world) *books {
	return &books{w: w, looks: map[*lock.Row]look{}, claims: map[string]*claim{}, marked: map[string]bool{}}
}

func (b *books) violated(promise int, format string, args ...any) {
	text := fmt.Sprintf("promise %d: ", promise) + fmt.Sprintf(format, args...)
	b.w.trace("VIOLATION of %s", text)
	b.violations = append(b.violations, text)
	if len(b.violations) == 1 {
		close(b.w.broken)
	}
}

// endless notes that somebody still waits long after the storm.
func (b *books) endless() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.violated(4, "somebody waits for ever")
}

// excused says whether the server's clock was set forward since: promises 1
// and 3 do not hold then.
func (b *books) excused(since time.Duration) bool {
	return len(b.forward) > 0 && b.forward[len(b.forward)-1] >= since
}

func (b *books) jumped(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if by > b.w.climate.lease/20 {
		b.forward = append(b.forward, b.w.now())
	}
}

func (b *books) looked(snap lock.Snapshot, number int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(snap.Rows) > 0 {
		b.looks[&snap.Rows[0]] = look{number, b.w.now()}
	}
}

func (b *books) stored(rec lock.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, mark := strings.CutSuffix(rec.ClaimID, "/broken")
	c, now := b.claims[id], b.w.now()
	if mark {
		b.marked[id] = true
	}
	if rec.Waiting && c.ticket == 0 {
		c.ticket = now
	}
	if rec.Waiting {
		c.queued = now
	}
	if !rec.Waiting && !rec.Released {
		c.last = now
	}
	c.over = c.over || rec.Released || mark
}

// turn is told by the lock itself of a turn in a lease's life.
func (b *books) turn(p *process, e lockrules.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Kind == lockrules.Began {
		rows := e.Rows.([]lock.Row)
		won := b.looks[&rows[0]]
		l := &lease{number: won.number, id: e.ID, by: p, since: won.at - b.w.climate.lease, deadline: e.Deadline}
		b.w.trace("%s: BEGINS, claim %s", l, short(e.ID))
		b.leases = append(b.leases, l)
		b.acquired++
		b.exclusive(l)
		b.inTurn(l)
		return
	}
	l := b.leaseOf(p, e.ID)
	if l == nil || l.ended {
		return
	}
	switch e.Kind {
	case lockrules.Extended:
		l.deadline = e.Deadline
		b.exclusive(l)
	case lockrules.Ended:
		l.ended = true
		b.w.trace("%s: ENDS", l)
	}
}

func (b *books) leaseOf(p *process, id string) *lease {
	for _, l := range slices.Backward(b.leases) {
		if l.by == p && l.id == id {
			return l
		}
	}
	return nil
}

// held gives the lease of a claim that a process has in hand.
func (b *books) held(p *process, id string) *lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leaseOf(p, id)
}

// exclusive checks promise 1.
func (b *books) exclusive(l *lease) {
	now := b.w.now()
	if !l.alive(now) {
		return
	}
	for _, other := range b.leases {
		if other != l && other.alive(now) && !b.excused(min(other.since, l.since)) {
			b.violated(1, "%s and %s hold at once", other, l)
		}
	}
}

// inserted checks promise 2 after an INSERT: of the rows written under the
// lock, none may show over one of a later hold.
func (b *books) inserted(rows []stateRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var shows stateRow
	latest := (*write)(nil)
	for _, row := range rows {
		if row.write == nil {
			continue
		}
		if row.version >= shows.version {
			shows = row
		}
		if latest == nil || row.write.lease.number > latest.lease.number {
			latest = row.write
		}
	}
	if latest != nil && shows.write.lease.number < latest.lease.number {
		b.violated(2, "%s (version %d) shows over %s (version %d)", shows.write, shows.version, latest, latest.version)
	}
}

// deleted checks promise 2 for a row that a DELETE removes.
func (b *books) deleted(row stateRow, by *write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if row.write != nil && row.write.lease.number > by.lease.number {
		b.violated(2, "the delete of %s removed %s", by.lease, row.write)
	}
}

// acknowledged checks promise 3 for a write whose writer takes it for done.
func (b *books) acknowledged(w *write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.w.trace("%s: done", w)
	b.writes = append(b.writes, w)
	for _, r := range b.reads {
		if r.lease.number > w.lease.number {
			b.sawAll(r, w)
		}
	}
}

// readUnder checks promise 3 for a read under a lease.
func (b *books) readUnder(l *lease, saw lock.Millis) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := read{l, saw, b.w.now()}
	b.w.trace("%s: reads up to version %d", l, saw)
	b.reads = append(b.reads, r)
	for _, w := range b.writes {
		if w.lease.number <= l.number {
			b.sawAll(r, w)
		}
	}
}

func (b *books) sawAll(r read, w *write) {
	if r.saw < w.version && !b.excused(w.lease.since) {
		b.violated(3, "%s (version %d) was acknowledged, %s read only up to %d", w, w.version, r.lease, r.saw)
	}
}

// archived checks that the history has what the first write of a lease replaces.
func (b *books) archived(l *lease, history []lock.Millis, gone lock.Millis) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var last *write
	for _, w := range b.writes {
		if w.lease.number < l.number && (last == nil || w.version > last.version) {
			last = w
		}
	}
	if last == nil || last.version <= gone || b.excused(last.lease.since) {
		return
	}
	if !slices.ContainsFunc(history, func(v lock.Millis) bool { return v >= last.version }) {
		b.violated(3, "%s replaced %s, which is not in the history", l, last)
	}
}

// sends notes whose a claim is.
func (b *books) sends(p *process, rec lock.Record) {
	if strings.HasSuffix(rec.ClaimID, "/broken") {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := rec.ClaimID
	if b.claims[id] == nil {
		b.claims[id] = &claim{by: p, first: b.w.now()}
	}
}

// inTurn checks promise 4 in the calm: nobody overtakes one who waited before
// it came, and a killed holder is replaced in time.
func (b *books) inTurn(l *lease) {
	now, calm := b.w.now(), b.w.calmSince()
	if calm == 0 {
		return
	}
	mine := b.claims[l.id]
	for _, c := range b.claims {
		if c.first > calm && !c.by.isDead() && !c.over && c.ticket != 0 && c.ticket+2*time.Second < mine.first {
			b.violated(4, "%s (claimed at %s) overtakes %s (a ticket since %s)", l, mine.first, c.by, c.ticket)
		}
	}
	if k := b.killed; k != nil {
		b.killed = nil
		limit := b.w.climate.lease*3/2 + 3*time.Second
		if b.w.climate.replicas == lagging {
			limit += 10 * settleFor // each announcement stands for so long
		}
		if took := now - b.killAt; mine.first < b.killAt && !b.stormy(mine) && took > limit {
			b.violated(4, "%s waited for %s after %s was killed", l, took, k)
		}
	}
}

// stormy says whether requests of the storm, or of the killed one, arrived
// after the kill and made another claim, or a ticket of somebody dead, look alive.
func (b *books) stormy(mine *claim) bool {
	for _, c := range b.claims {
		if c == mine {
			continue
		}
		dead := c.by.isDead()
		if c.last >= b.killAt && (dead || c.first < b.w.calmSince()) || dead && c.queued >= b.killAt {
			return true
		}
	}
	return false
}

// holder gives a process that holds.
func (b *books) holder() *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range slices.Backward(b.leases) {
		if l.alive(b.w.now()) {
			return l.by
		}
	}
	return nil
}

// kill notes that a process was killed.
func (b *books) kill(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.w.now()
	for _, l := range b.leases {
		if l.by == p && l.alive(now) && b.w.calmSince() != 0 {
			b.killed, b.killAt = l, now
		}
	}
}

// waited checks promise 4 for one Acquire of the calm.
func (b *books) waited(p *process, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &b.w.climate
	if limit := 4*c.lease + time.Duration(c.processes*c.workers)*5*time.Second + 10*time.Second; d > limit {
		b.violated(4, "%s waited for %s in the calm, limit %s", p, d, limit)
	}
}

// closed checks that nothing is left of the claims of the calm, but those of
// processes that were killed.
func (b *books) closed(rows []lock.Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range (lock.Snapshot{Rows: rows}).Claims() {
		of := b.claims[c.ID]
		if !c.Released && !of.by.isDead() && of.first > b.w.calmSince() {
			b.violated(4, "claim %s is left", short(c.ID))
		}
	}
}

func short(id string) string {
	id = strings.TrimPrefix(id, "!")
	rest := ""
	if i := strings.IndexByte(id, '/'); i >= 0 {
		id, rest = id[:i], id[i:]
	}
	return id[max(0, len(id)-6):] + rest
}

func kind(rec lock.Record) string {
	switch {
	case rec.Released:
		return " tombstone"
	case rec.Waiting:
		return " ticket"
	case rec.Ceiling == lock.ServerFills:
		return " announcement"
	}
	return " renewal"
}
