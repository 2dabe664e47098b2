package server

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// heldInMemory is how much of a result is held back in memory; more goes to a file.
const heldInMemory = 32 << 20

// heldBack is the part of a result that was not sent yet.
type heldBack struct {
	spool    *spool
	memory   bytes.Buffer
	file     *os.File
	size     int64
	complete bool // the whole result is here
}

func (h *heldBack) write(p []byte) error {
	h.size += int64(len(p))
	if h.file == nil && h.memory.Len()+len(p) > heldInMemory {
		var err error
		if h.file, err = h.spool.temporary(); err != nil {
			return err
		}
	}
	if h.file != nil {
		_, err := h.file.Write(p)
		return err
	}
	h.memory.Write(p)
	return nil
}

// drain hands everything to pass and holds nothing any more.
func (h *heldBack) drain(pass func([]byte) error) error {
	defer h.discard()
	if h.memory.Len() > 0 {
		if err := pass(h.memory.Bytes()); err != nil {
			return err
		}
	}
	if h.file == nil {
		return nil
	}
	if _, err := h.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	buf := make([]byte, holdBack)
	for {
		n, err := h.file.Read(buf)
		if n > 0 {
			if err := pass(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (h *heldBack) discard() {
	h.memory.Reset()
	if h.file != nil {
		_ = h.file.Close()
		h.file = nil
	}
}
