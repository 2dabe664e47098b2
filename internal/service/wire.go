package service

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// writer sends messages, each as one line and in one piece, whoever sends it.
type writer struct {
	mu  sync.Mutex
	out *bufio.Writer
	enc *json.Encoder
}

func newWriter(out io.Writer) *writer {
	b := bufio.NewWriterSize(out, 64<<10)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return &writer{out: b, enc: enc}
}

// send gives the message away at once. An error means that nobody reads any
// more; the end of the input, which comes with it, ends the service.
func (w *writer) send(message any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enc.Encode(message); err != nil {
		return err
	}
	return w.out.Flush()
}

// readLines reads requests until the input ends. The channel is closed at the
// end; a line that is no request is passed on with its error.
func readLines(in io.Reader, stop <-chan struct{}) <-chan incoming {
	lines := make(chan incoming)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil { // a last line without its end is half a request
				return
			}
			var req request
			err = json.Unmarshal(line, &req)
			if err == nil && req.Op == "" {
				err = errors.New("no op in it")
			}
			select {
			case lines <- incoming{req, err}:
			case <-stop:
				return
			}
		}
	}()
	return lines
}

type incoming struct {
	request
	err error
}
