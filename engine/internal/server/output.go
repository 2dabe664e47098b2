package server

import (
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/chstate/chstate/engine/internal/chdb"
)

// holdBack is how much of a result waits before the status goes out: up to there
// a late error still gets a status of its own.
const holdBack = 1 << 20

// output is an answer on its way: held back first, then through ClickHouse's
// framing and HTTP's compression, as asked for.
type output struct {
	w       http.ResponseWriter
	started time.Time
	waitEnd bool
	encode  func(io.Writer) (io.WriteCloser, error) // HTTP's compression, or nil
	frame   *compress.Writer                        // ClickHouse's framing, or nil
	tag     string                                  // of an exception after data

	held *heldBack
	sent bool
	to   io.WriteCloser
}

func (o *output) Write(p []byte) (int, error) {
	if !o.sent {
		if err := o.held.write(p); err != nil {
			return 0, err
		}
		if !o.waitEnd && o.held.size > holdBack {
			return len(p), o.send(http.StatusOK)
		}
		return len(p), nil
	}
	if err := o.pass(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// send writes status and headers, then what was held back.
func (o *output) send(status int) error {
	o.sent = true
	if o.encode == nil && o.frame == nil && status == http.StatusOK && o.to == nil && o.held.complete {
		o.w.Header().Set("Content-Length", strconv.FormatInt(o.held.size, 10))
	}
	o.w.WriteHeader(status)
	o.to = nopCloser{o.w}
	if o.encode != nil {
		var err error
		if o.to, err = o.encode(o.w); err != nil {
			return err
		}
	}
	return o.held.drain(o.pass)
}

// pass sends data on, in frames where they are asked for.
func (o *output) pass(p []byte) error {
	if o.frame == nil {
		_, err := o.to.Write(p)
		return err
	}
	for len(p) > 0 {
		n := min(len(p), holdBack)
		if err := o.frame.Compress(p[:n]); err != nil {
			return err
		}
		if _, err := o.to.Write(o.frame.Data); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// finish ends a result.
func (o *output) finish(stats chdb.Stats) error {
	if !o.sent {
		o.held.complete = true
		o.summary(stats)
		if err := o.send(http.StatusOK); err != nil {
			return err
		}
	}
	return o.to.Close()
}

// fail answers with an exception. Where the result has begun, it goes after the
// data, marked, and the connection is cut so that no client takes the answer for
// whole.
func (o *output) fail(e *chdb.Exception, version string) {
	text := e.Text + " (version " + version + " (official build))\n"
	if !o.sent {
		o.held.discard()
		h := o.w.Header()
		setOwn(h, "Exception-Code", strconv.Itoa(e.Code))
		h.Set("Content-Type", "text/plain; charset=UTF-8")
		o.summary(chdb.Stats{})
		if err := o.send(httpStatus(e.Code)); err == nil && o.pass([]byte(text)) == nil {
			_ = o.to.Close()
		}
		return
	}
	const marker = "__exception__"
	_ = o.pass(fmt.Appendf(nil, "\r\n%s\r\n%s\r\n%s%d %s\r\n%s\r\n", marker, o.tag, text, len(text), o.tag, marker))
	_ = o.to.Close()
	_ = http.NewResponseController(o.w).Flush()
	panic(http.ErrAbortHandler)
}

func (o *output) summary(s chdb.Stats) {
	setOwn(o.w.Header(), "Summary", fmt.Sprintf(
		`{"read_rows":"%d","read_bytes":"%d","written_rows":"%d","written_bytes":"%d","total_rows_to_read":"0","result_rows":"%d","result_bytes":"%d","elapsed_ns":"%d"}`,
		s.ReadRows, s.ReadBytes, s.WrittenRows, s.WrittenBytes, max(s.ResultRows, s.WrittenRows), max(uint64(o.held.size), s.WrittenBytes), time.Since(o.started).Nanoseconds()))
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// chooseEncoding picks the compression for an answer from Accept-Encoding, the
// quickest first.
func chooseEncoding(accept string, level int) (name string, encode func(io.Writer) (io.WriteCloser, error)) {
	offered := map[string]bool{}
	for part := range strings.SplitSeq(accept, ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.ReplaceAll(weight, " ", "") != "q=0" {
			offered[strings.ToLower(strings.TrimSpace(coding))] = true
		}
	}
	switch {
	case offered["lz4"]:
		return "lz4", func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil }
	case offered["zstd"]:
		return "zstd", func(w io.Writer) (io.WriteCloser, error) {
			return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))
		}
	case offered["gzip"]:
		return "gzip", func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, min(max(level, 1), 9)) }
	case offered["br"]:
		return "br", func(w io.Writer) (io.WriteCloser, error) {
			return brotli.NewWriterLevel(w, min(max(level, 0), 11)), nil
		}
	case offered["deflate"]:
		return "deflate", func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriterLevel(w, min(max(level, 1), 9)) }
	}
	return "", nil
}

// chooseFrame picks the method of ClickHouse's framing.
func chooseFrame(method string, zstdLevel int) *compress.Writer {
	switch strings.ToUpper(method) {
	case "ZSTD":
		return compress.NewWriter(compress.Level(zstdLevel), compress.ZSTD)
	case "LZ4HC":
		return compress.NewWriter(compress.Level(9), compress.LZ4HC)
	case "NONE":
		return compress.NewWriter(0, compress.None)
	}
	return compress.NewWriter(0, compress.LZ4)
}

// setOwn sets one of ClickHouse's headers, X-ClickHouse-name, in its own spelling:
// http.Header would write X-Clickhouse-.
func setOwn(h http.Header, name, value string) {
	h["X-ClickHouse-"+name] = []string{value}
}
