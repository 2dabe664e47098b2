/*
Package lock gives one process at a time the right to change what is stored
under a key, by means of a table that can do no more than append rows and read
them: no unique constraint, no compare-and-set, no transaction, and clocks that
nobody vouches for. It is made for ClickHouse and knows nothing of it; all that
it asks for is a Log.

	l := lock.New(log, lock.Options{Lease: 10 * time.Second, Wait: 30 * time.Second, …})
	hold, err := l.Acquire(ctx, "dev:tap-to-target") // *BusyError names who has it
	if err != nil {
		return err
	}
	defer hold.Release()
	… read what is stored, only now …
	err = hold.Write(ctx, versionOfTheRowRead, func(ctx context.Context, v lock.Millis) error {
		return insert(ctx, row, v) // the row with the greatest version is the one that shows
	})

# What is promised

 1. Exclusion. No two processes hold one key at once, as long as any two clocks
    run within 10 % of each other. What the clocks of the clients say is of no
    matter at all.
 2. No regress. However long a process or a request is held up, and whatever
    the clocks do, the server's included, a write of an earlier hold never
    shows over a write of a later one.
 3. No silent loss. A write that was acknowledged was there before any later
    holder looked. A write of which that cannot be known is an error, ErrLost.
 4. Progress. A holder that vanishes is replaced one lease after its last sign
    of life. Who waits is served in the order of arrival, and nobody waits
    beyond Options.Wait without an error that names the holder.
 5. Cost. An undisturbed claim is one append and one read, its release one
    append; a claim that is kept from one use to the next (Options.Linger)
    costs nothing. Nobody sleeps to be safe.

Not promised: anything against those who write without the lock. Promises 1 and
3 while the server's own clock is set forward by a fifth of a lease or more: a
claim may then be taken over that its holder still counts on. The holder finds
out within a third of its lease and gets ErrLost, and promise 2 stands. Promise
2 for a request that is on its way for longer than the table keeps its rows
(300 s beyond their expiry) while the server's clock is behind the versions.
That a dead
holder is found out when the server's clock was set back, by those who wait for
less than 1.25 of its leases.
That a write of unknown fate stays hidden when a later hold deleted everything
below it before it arrived. Any of it on a machine whose clocks all stood still.

# Rows

A claim is one attempt to get the lock, and one hold of it when it succeeds;
its id is "!" and a UUIDv7, new each time. What a claimant has to say of its
claim, it says with a row:

	an announcement  I want it now          even seq, ceiling filled in by the server
	a ticket         I wait for it          even seq, waiting, ceiling 0
	a renewal        I hold it still        even seq, ceiling told
	a tombstone      I do not want it now   odd seq, released, ceiling = last version sent

where seq counts the claim's rows: 2, 4, 6, …; a tombstone has the odd number
after the last; and every announcement after the first begins a new attempt, a
greater number in the upper 32 bits. Of a claim's rows the one with the greatest
seq is the claim. So a request may be repeated, and requests may arrive in any
order, or be merged away by the table as soon as a greater seq is there. The
server's time orders nothing: two rows may share a millisecond, and it may
step back. Two rows with one seq are one row that was sent again and that the
server filled in at two times: I read mine as the lesser of them, for a merge
may keep either, and others' as the greater.

Each row says until when its claim lives (server's time of storing + lease),
and carries a ceiling: no write of the claim has a version at or above it.

A mark is a tombstone that somebody else sets on a claim. It is a row with a
claim id of its own ("!…/broken"), so that nothing its owner does later, and no
merge, takes it away. It has the seq of the claim as it was seen, and ends that
attempt: a claim that waited and announced again since is a new one, which a mark
that comes late does not hit. Break writes a mark, for an operator; a claimant
does, as told below.

# Getting it

	            announce ──▶ look ──▶ alone, and in time ───────────▶ hold
	               ▲           │
	               │           ├──▶ alone but for the dead ─▶ mark them, look again
	oldest ticket, │           │
	nobody holds   │           └──▶ somebody is there, or waits
	               │                         │
	               └──── look, now and then ◀┴─ ticket

A claimant appends its announcement, waits for the acknowledgement, and only
then reads all rows of the key, together with the server's clock. Decide, a pure
function, says what that look means. Another claim is dead

  - when it is released or marked;
  - or when it expired by the server's clock (beyond the allowed skew, where
    several servers answer);
  - or when it stood unchanged, by my own clock, for 1.25 of its own leases: from
    the receipt of one look to the sending of another. That finds dead holders
    whose expiry says nothing, because the server's clock was set back.

Otherwise it lives. If nobody else lives but tickets, my own row is there and
alive, and I am before my deadline, it is mine. My deadline is 0.8 of a lease after I
began to send, by my clock: everybody else sees my claim live for longer than that.

If it would be mine but for dead claims without a tombstone, their holders may
not know that they are dead: it may be the server's clock that jumped, not they
who stopped. I mark those claims and look again, before I hold. Why this
matters is told under "Why it holds".

Else I turn my claim into a ticket, renewed like a hold, and look again and
again: about ten times a second, less often with more before me. Tickets stand in
nobody's way, but a newcomer that sees one takes one itself, and among tickets
only the oldest announces, when nobody holds. A newcomer whose id is older than
somebody's who was there before it has a slow wall clock: it takes an id younger
than theirs, so that it cannot overtake them again and again.

# Holding it

The version clock starts at F: the server's now in the winning look, or one
above the greatest ceiling of any other claim, tombstones and the dead
included, whichever is greater. From there it runs with my own clock, counted from the
sending of that look, and each later look lifts it to the server's now if it
is behind. A write gets max(version clock, last version + 1, version of the row it
replaces + 1), and is only sent while that is below the claim's ceiling and the
deadline has not passed. Where versions are ahead of the server's clock (it was
set back, or a state was restored that is dated in the future) the ceiling is
too low, and is raised first.

Every third of a lease the holder looks (is my claim there, unmarked?) and
appends a renewal with a ceiling of version clock + lease. An acknowledgement
that comes before the old deadline gives a new one, counted from the sending of
the renewal. The new ceiling may be used after a look that was sent after the
acknowledgement and shows no mark: mostly that of the next renewal, for the
ceiling before reaches until then and a third of a lease beyond; at once where a
write needs it. Ceilings never fall.

Past the deadline the hold is over: its context ends with ErrLost, writes are
refused. A write that is acknowledged after the deadline is ErrLost too. An
unanswered write may be sent again, with the same version, until the deadline.

Release appends the tombstone, uncancelled by the caller, bounded in time,
repeated when unanswered. Or the lease lingers: the next Acquire of this
process uses it again. It looks first if its last look is older than a second;
meanwhile it looks four times a second whether somebody waits, and gives way.

# Why it holds

Exclusion. Of two announcements one is stored first. The other's claimant looks
after both are stored, so it sees the first claim, and holds only if that one
is a ticket or dead. Dead by the clocks is later than the first one's own
deadline: 0.8 of a lease by its clock from before sending is at most 0.88 of a
lease by the server's clock from before storing, and 1.25 leases of an
observer's clock are at least 1.13 of its own. A ticket was
written by its owner, who must announce and look again before it holds.

No regress. Let hold B's winning look come after hold A's. A writes only below a
ceiling C that was stored and, unless it is the announcement's own, looked at.
B saw A released: then its tombstone has the last version sent, and B's
versions are above. Or B saw A dead and unmarked, marked it, and looked again.
If A's row with C was stored before that second look, B saw C, and is above.
If it was stored after, then so was A's look that makes C usable, and that
showed the mark: A never writes up to C. None of this asks what any clock said.

No silent loss. A write acknowledged before its holder's deadline was stored
before any later holder's winning look, hence before its read of the state.

# Where several servers answer

A Read must see every acknowledged Append. One server gives that, and so do
replicas with quorum inserts and sequentially consistent reads; their clocks
differ, which Options.Skew allows for. Where nothing can give it, Options.Settle
waits for the replicas: after announcing, and again before what others wrote is
read. Exclusion then rests on their lag, and leases do not linger.

# Where the older plugin shares the table

A claim without a seq is the older Python plugin's. It waits while there is any
row of the key. Then it inserts its own, sleeps for a second, and has the lock if
no row of the key has a lower id; ours are lower, released or not. So it is excluded by any row of ours, and we are by any row of
its that is there before ours. What it takes to let both get on is in older.go,
and why in docs/adr: claims that are over are deleted, rows that came after ours
are not waited for, and newcomers let it have three seconds of every four.

# Against the design note

The project's design note (lock.md, which is kept outside of this repository) is
where this package began. It differs in these points; docs/adr has the reasons.

  - The mark, the second look of a take-over, and the look between a renewal and
    the use of its ceiling are not in the note. Without them a holder that the
    server's clock made look dead renews itself to a ceiling above its
    successor's versions, and writes over it.
  - A forced release is a mark, not row 2n+1 of the claim, which the next renewal
    would outrun; and seq counts attempts in its upper half, for the marks.
  - Tickets carry ceiling 0. With a ceiling a lease ahead they pushed the next
    holder's versions ahead of the clock.
  - Rows of one seq are read as the least for myself and the longest-lived for others.
  - A newcomer takes an id younger than the claims it sees.
  - All tickets look at a pace that follows their place in the line.
  - A lingering lease looks whether somebody waits.
  - Ceilings of the older plugin's rows do not count: they are a default of the
    column, and would hide what that plugin writes next.
  - With Options.Settle the winner waits once more before it reads what others wrote.
*/
package lock
