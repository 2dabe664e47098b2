package chstate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chstate/chstate/internal/clickhouse"
	"github.com/chstate/chstate/lock"
)

// LockInfo is one claim on a state id's lock, for people.
type LockInfo struct {
	ID      string      // the state id
	ClaimID string      // "!" + UUIDv7; a plain UUID for a process of the older plugin
	Holder  lock.Holder // zero for the older plugin
	Waiting bool        // it waits in line; otherwise it holds, or is just announcing itself
	Since   time.Time   // since when, by the holder's clock
	Seen    time.Time   // its last sign of life, by the server's clock
	FreeAt  time.Time   // when it counts no more unless renewed, by the server's clock
	Now     time.Time   // the server's clock when this was read

	claim lock.Claim
}

// ReleaseCommand is what an operator types to break exactly this claim.
func (l LockInfo) ReleaseCommand() string { return releaseCommand(l.ID, l.ClaimID) }

// Locks gives the claims that are live, by state id, the oldest first. A
// holder that died within its lease is among them.
func (s *Store) Locks(ctx context.Context) ([]LockInfo, error) {
	all, err := s.db.Claims(ctx)
	if err != nil {
		return nil, s.wrap(err, "list locks")
	}
	rules := lock.Rules{Skew: s.db.Skew()}
	var out []LockInfo
	for _, locked := range all {
		out = append(out, liveClaims(rules, locked)...)
	}
	return out, nil
}

// LocksOf gives the live claims on one state id, the oldest first.
func (s *Store) LocksOf(ctx context.Context, id string) ([]LockInfo, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	snap, err := s.db.LockLog().Read(ctx, id)
	if err != nil {
		return nil, s.wrap(err, "read the lock of state %q", id)
	}
	return liveClaims(lock.Rules{Skew: s.db.Skew()}, clickhouse.Locked{ID: id, Snapshot: snap}), nil
}

func liveClaims(rules lock.Rules, locked clickhouse.Locked) []LockInfo {
	var out []LockInfo
	for _, c := range locked.Claims() {
		if !rules.Live(c, locked.Now) {
			continue
		}
		info := LockInfo{
			ID: locked.ID, ClaimID: c.ID, Holder: c.Holder, Waiting: c.Waiting, Since: c.Holder.AcquiredAt,
			Seen: c.LockedAt.Time(), FreeAt: c.ExpiresAt.Time(), Now: locked.Now.Time(), claim: c,
		}
		if info.Since.IsZero() {
			info.Since = info.Seen
		}
		out = append(out, info)
	}
	return out
}

// BreakLock takes a lock away from whoever holds it: for an operator who knows
// that the holder is dead, or wants it stopped. claimID names the claim, so
// that not another one is hit that came meanwhile; empty means all holders,
// those who wait are let be. It gives what it broke, also beside an error; nothing
// when there was nothing to break. A holder that lives loses its lock: it notices within a
// third of its lease, and what it still writes until then never shows over the
// next holder's writes.
func (s *Store) BreakLock(ctx context.Context, id, claimID string) ([]LockInfo, error) {
	live, err := s.LocksOf(ctx, id)
	if err != nil {
		return nil, err
	}
	live = slices.DeleteFunc(live, func(l LockInfo) bool {
		if claimID != "" {
			return l.ClaimID != claimID
		}
		return l.Waiting
	})
	for i, l := range live {
		if l.claim.Foreign() {
			err = s.db.DropClaims(ctx, id, l.ClaimID)
		} else {
			err = lock.Break(ctx, s.db.LockLog(), id, l.claim, s.holder)
		}
		if err != nil {
			return live[:i], s.wrap(err, "break the lock of state %q", id)
		}
	}
	if len(live) == 0 && claimID != "" {
		return nil, &Error{
			Kind: ErrNoState, Reason: fmt.Sprintf("no live claim %q on state %q", claimID, id),
			Advice: "`" + commandOn("chstate lock show", strings.TrimPrefix(id, RunKey(""))) + "` lists those that are",
		}
	}
	return live, nil
}
