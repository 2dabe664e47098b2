package chdb

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Param is a query parameter: {Name:Type} in the statement. Value is text in
// TabSeparated escaping, as over HTTP.
type Param struct{ Name, Value string }

// Stats counts what a statement read and wrote.
type Stats struct {
	ReadRows, ReadBytes       uint64
	WrittenRows, WrittenBytes uint64
	ResultRows                uint64
}

func (s *Stats) add(o Stats) {
	s.ReadRows += o.ReadRows
	s.ReadBytes += o.ReadBytes
	s.WrittenRows += o.WrittenRows
	s.WrittenBytes += o.WrittenBytes
	s.ResultRows += o.ResultRows
}

// Conn is one connection: a session of its own with its settings, current
// database and temporary tables. It runs one statement at a time and must not be
// used from several goroutines at once; several Conns run in parallel.
type Conn struct {
	lib    *Library
	handle unsafe.Pointer // chdb_connection*, a pointer to the opaque handle
}

// Open makes a connection. The first one starts the engine with args (--path and
// so on), later ones join it; when the last one is closed the engine stops.
func (l *Library) Open(args ...string) (*Conn, error) {
	argv := make([]*byte, 0, len(args)+1)
	for _, arg := range append([]string{"clickhouse"}, args...) {
		text := append([]byte(arg), 0)
		argv = append(argv, &text[0])
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	for _, p := range argv {
		pinner.Pin(p)
	}
	handle := l.connect(int32(len(argv)), unsafe.Pointer(&argv[0]))
	runtime.KeepAlive(argv)
	if handle == nil {
		return nil, errors.New("libchdb refused to open a connection")
	}
	return &Conn{lib: l, handle: handle}, nil
}

// Close ends the connection. A second call does nothing.
func (c *Conn) Close() {
	if c.handle != nil {
		c.lib.closeConn(c.handle)
		c.handle = nil
	}
}

// Query runs a statement to its end and returns the whole result in format.
// A failure of the statement is an *Exception.
func (c *Conn) Query(statement []byte, format string, params ...Param) ([]byte, Stats, error) {
	result, err := c.call(c.lib.query, statement, format, params)
	if err != nil {
		return nil, Stats{}, err
	}
	defer c.lib.destroy(result)
	return c.copyData(result), c.stats(result), nil
}

// Exec runs a statement whose result does not matter.
func (c *Conn) Exec(statement string) error {
	_, _, err := c.Query([]byte(statement), "Null")
	return err
}

// Stream starts a statement whose result is fetched piece by piece. Until the
// stream is closed the connection can run nothing else.
func (c *Conn) Stream(statement []byte, format string, params ...Param) (*Stream, error) {
	result, err := c.call(c.lib.stream, statement, format, params)
	if err != nil {
		return nil, err
	}
	return &Stream{conn: c, handle: result}, nil
}

func (c *Conn) call(fn queryFunc, statement []byte, format string, params []Param) (unsafe.Pointer, error) {
	if c.handle == nil {
		return nil, errors.New("the connection is closed")
	}
	var args paramArrays
	args.fill(params)
	defer args.pinner.Unpin()
	result := fn(*(*unsafe.Pointer)(c.handle),
		unsafe.Pointer(unsafe.SliceData(statement)), uintptr(len(statement)),
		unsafe.Pointer(unsafe.StringData(format)), uintptr(len(format)),
		args.pointer(args.names), args.pointer(args.nameLens), args.pointer(args.values), args.pointer(args.valueLens),
		uintptr(len(params)))
	runtime.KeepAlive(statement)
	runtime.KeepAlive(format)
	runtime.KeepAlive(&args)
	if result == nil {
		return nil, errors.New("libchdb returned no result")
	}
	if text := c.lib.errorText(result); text != "" {
		c.lib.destroy(result)
		return nil, parseException(text)
	}
	return result, nil
}

func (c *Conn) copyData(result unsafe.Pointer) []byte {
	n := c.lib.length(result)
	if n == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(c.lib.buffer(result)), n)...)
}

func (c *Conn) stats(result unsafe.Pointer) Stats {
	return Stats{
		ReadRows:     c.lib.storageRows(result),
		ReadBytes:    c.lib.storageSize(result),
		WrittenRows:  c.lib.writtenRows(result),
		WrittenBytes: c.lib.writtenSize(result),
		ResultRows:   c.lib.resultRows(result),
	}
}

// paramArrays lays parameters out as the C interface takes them: each an array
// of words (pointers or lengths).
type paramArrays struct {
	names, nameLens, values, valueLens []uintptr
	pinner                             runtime.Pinner
}

func (a *paramArrays) fill(params []Param) {
	text := func(s string) uintptr {
		b := append([]byte(s), 0)
		a.pinner.Pin(&b[0])
		return uintptr(unsafe.Pointer(&b[0]))
	}
	for _, p := range params {
		a.names = append(a.names, text(p.Name))
		a.nameLens = append(a.nameLens, uintptr(len(p.Name)))
		a.values = append(a.values, text(p.Value))
		a.valueLens = append(a.valueLens, uintptr(len(p.Value)))
	}
}

func (a *paramArrays) pointer(words []uintptr) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(words))
}

// Stream is the result of a running statement.
type Stream struct {
	conn   *Conn
	handle unsafe.Pointer
	stats  Stats
	done   bool
}

// Next returns the next piece of the result, one block's output, or nil at the
// end. A failure of the statement is an *Exception.
func (s *Stream) Next() ([]byte, error) {
	if s.done {
		return nil, nil
	}
	lib := s.conn.lib
	result := lib.streamFetch(*(*unsafe.Pointer)(s.conn.handle), s.handle)
	if result == nil {
		s.done = true
		return nil, errors.New("libchdb returned no result")
	}
	defer lib.destroy(result)
	if text := lib.errorText(result); text != "" {
		s.done = true
		return nil, parseException(text)
	}
	s.stats.add(s.conn.stats(result))
	data := s.conn.copyData(result)
	s.done = len(data) == 0
	return data, nil
}

// Stats counts what was read so far.
func (s *Stream) Stats() Stats { return s.stats }

// Close ends the statement, also one that still runs.
func (s *Stream) Close() {
	if s.handle == nil {
		return
	}
	if !s.done {
		s.conn.lib.streamCancel(*(*unsafe.Pointer)(s.conn.handle), s.handle)
	}
	s.conn.lib.destroy(s.handle)
	s.handle = nil
}

// Exception is an error of the engine: ClickHouse's code, its name and the text
// as the engine wrote it, without the version that a server appends.
type Exception struct {
	Code int
	Name string
	Text string
}

func (e *Exception) Error() string { return e.Text }

// NewException makes an exception in the engine's own wording.
func NewException(code int, name, format string, args ...any) *Exception {
	return &Exception{Code: code, Name: name, Text: fmt.Sprintf("Code: %d. DB::Exception: %s. (%s)", code, fmt.Sprintf(format, args...), name)}
}
