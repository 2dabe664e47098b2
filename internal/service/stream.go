package service

import (
	"context"
)

// A chunk is sent when it has chunkStates entries or chunkBytes of text, and
// chunksAhead of them may be on their way to a caller who has not asked for
// more: what is in memory stays bounded, however many states there are.
const (
	chunkStates = 1000
	chunkBytes  = 1 << 20
	chunksAhead = 2
)

// stream sends the ids, or the states, that match the pattern.
func (s *service) stream(ctx context.Context, j *job, pattern string) {
	for range chunksAhead {
		j.credits <- struct{}{}
	}
	var err error
	if j.op == "ids" {
		err = sendChunks(ctx, s, j, s.store.IDs(ctx, pattern), idToWire, func(id string) int { return len(id) })
	} else {
		err = sendChunks(ctx, s, j, s.store.All(ctx, pattern), toWire, wireState.size)
	}
	s.answer(j.id, done{}, err)
}

// sendChunks reads the sequence only as fast as the caller asks for chunks.
func sendChunks[T, W any](
	ctx context.Context, s *service, j *job, seq func(yield func(T, error) bool),
	convert func(T) (W, error), size func(W) int,
) error {
	var chunk []W
	var bytes int
	flush := func() error {
		select {
		case <-j.credits:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		err := s.w.send(answer{ID: j.id, Chunk: chunk})
		chunk, bytes = chunk[:0], 0
		return err
	}
	for item, err := range seq {
		if err != nil {
			return err
		}
		w, err := convert(item)
		if err != nil {
			return err
		}
		chunk = append(chunk, w)
		if bytes += size(w); len(chunk) == chunkStates || bytes >= chunkBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(chunk) == 0 {
		return nil
	}
	return flush()
}

// more lets a stream send one more chunk.
func (s *service) more(id uint64) {
	if j := s.job(id); j != nil && j.credits != nil {
		select {
		case j.credits <- struct{}{}:
		default: // more asked for than may be on the way
		}
	}
}
