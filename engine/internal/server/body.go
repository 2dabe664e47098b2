package server

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// decodeBody undoes what Content-Encoding names.
func decodeBody(body io.Reader, encoding string) (io.Reader, error) {
	var (
		r   io.Reader
		err error
	)
	switch strings.ToLower(encoding) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(body)
	case "deflate":
		r, err = zlib.NewReader(body)
	case "br":
		r = brotli.NewReader(body)
	case "lz4":
		r = lz4.NewReader(body)
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1)); err == nil {
			r = z.IOReadCloser()
		}
	default:
		return nil, codeNotImplemented.errorf("Content-Encoding %s is not supported; this engine takes gzip, deflate, br, zstd and lz4", encoding)
	}
	if err != nil {
		return nil, codeCannotDecompress.errorf("The body is not %s as Content-Encoding says: %v", encoding, err)
	}
	return &brokenBody{r, encoding}, nil
}

// decodeFrames undoes ClickHouse's own framing (decompress=1).
func decodeFrames(body io.Reader) io.Reader {
	raw := &counting{Reader: body}
	return &brokenBody{&frames{raw: raw, decoder: compress.NewReader(raw)}, "in ClickHouse's compressed frames"}
}

// frames tells the end after a whole frame from one within: the decoder wraps
// io.EOF for both.
type frames struct {
	raw     *counting
	decoder *compress.Reader
}

func (f *frames) Read(p []byte) (int, error) {
	before := f.raw.n
	n, err := f.decoder.Read(p)
	if errors.Is(err, io.EOF) {
		if f.raw.n != before {
			return n, io.ErrUnexpectedEOF
		}
		return n, io.EOF
	}
	return n, err
}

// counting counts the bytes read through it.
type counting struct {
	io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// brokenBody turns a decoder's errors into ClickHouse's.
type brokenBody struct {
	io.Reader
	encoding string
}

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a wrapped io.EOF is no clean end
		err = codeCannotDecompress.errorf("The body is not %s as the request says: %v", b.encoding, err)
	}
	return n, err
}
