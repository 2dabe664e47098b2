package chstate

import (
	"context"
	"errors"
	"iter"
)

var errSkeleton = errors.New("not built yet")

// Store is the state kept in one pair of tables. It may be used by many
// goroutines at once.
type Store struct{}

// Open checks the options and gives the store. It does not connect: the first
// call that needs the server does, and makes missing tables then.
func Open(ctx context.Context, o Options) (*Store, error) { return nil, errSkeleton }

// Warm connects and looks at the tables, so that the next call need not. Its
// error, if any, will come again from that call.
func (s *Store) Warm(ctx context.Context) error { return errSkeleton }

// Get reads one state, without a lock: the last one acknowledged. ErrNoState
// when there is none. Within a hold of this store (Lock), it is the hold's own
// view.
func (s *Store) Get(ctx context.Context, id string) (State, error) { return State{}, errSkeleton }

// Set writes both halves without a lock, as Meltano's `set` does: over whatever is there.
// Within a hold of this store it belongs to the hold.
func (s *Store) Set(ctx context.Context, st State) error { return errSkeleton }

// Update writes under the lock by Meltano's rule: a complete state replaces
// what is there, a partial one is merged onto the partial half that is there.
func (s *Store) Update(ctx context.Context, st State) error { return errSkeleton }

// Delete removes a state under the lock; what is not there is no error.
func (s *Store) Delete(ctx context.Context, id string) error { return errSkeleton }

// IDs yields the ids that match the fnmatch pattern ("" for all), in order.
func (s *Store) IDs(ctx context.Context, pattern string) iter.Seq2[string, error] { return nil }

// All yields the states that match, ordered by id, streaming.
func (s *Store) All(ctx context.Context, pattern string) iter.Seq2[State, error] { return nil }

// SetAll reads and checks every state before it writes any, then writes them
// in batches, without locks; it gives the number written.
func (s *Store) SetAll(ctx context.Context, states iter.Seq2[State, error]) (int, error) {
	return 0, errSkeleton
}

// ClearAll removes the states that are there now and gives their number; one
// written meanwhile stays.
func (s *Store) ClearAll(ctx context.Context) (int, error) { return 0, errSkeleton }

// Lock takes the lock of an id and keeps it for several calls (Meltano's
// acquire_lock). The calls of this store on that id, made with the hold's
// context, belong to it.
func (s *Store) Lock(ctx context.Context, id string) (*Hold, error) { return nil, errSkeleton }

// Migrate brings older tables up to date, explicitly.
func (s *Store) Migrate(ctx context.Context) error { return errSkeleton }

// InitSQL gives the statements that an administrator runs to prepare the
// tables, GRANTs included.
func InitSQL(o Options) (string, error) { return "", errSkeleton }

// Close releases every lock that lingers, within a bound, and the connections.
func (s *Store) Close() error { return errSkeleton }

// Hold is a lock held over several calls.
type Hold struct{}

// Context ends with ErrLockLost as its cause before the lease does.
func (h *Hold) Context() context.Context { return nil }

// Get, Set and Delete work on the held id under the lock. They fail with ErrLockLost once it is lost.
func (h *Hold) Get(ctx context.Context) (State, error)  { return State{}, errSkeleton }
func (h *Hold) Set(ctx context.Context, st State) error { return errSkeleton }
func (h *Hold) Delete(ctx context.Context) error        { return errSkeleton }

// Release gives the lock back (it may linger in the process for the next
// update of the id). It is not cancelled with the work's context.
func (h *Hold) Release() error { return errSkeleton }
