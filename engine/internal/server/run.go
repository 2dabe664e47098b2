package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"github.com/chstate/chstate/engine/internal/chdb"
	"github.com/chstate/chstate/engine/internal/native"
	"github.com/chstate/chstate/engine/internal/sqltext"
)

// statementLimit is how much of a text is read to find out what it is. ClickHouse
// takes no more than max_query_size (256 KiB) for a statement without its data.
const statementLimit = 1 << 20

// run is one request's statement on its connection.
type run struct {
	server  *Server
	q       *request
	link    *link
	session *session // nil for a connection of the request's own
	out     *output

	// traceless says that the statement left nothing on the connection.
	traceless bool
}

// prepare brings the connection into the state that the request asks for.
func (r *run) prepare(tables []externalTable, values url.Values) error {
	if err := r.link.configure(r.q); err != nil {
		return err
	}
	if err := r.server.createExternal(r.link, tables, values); err != nil {
		return err
	}
	if r.q.readOnly && r.session == nil && r.q.setting("readonly", "0") == "0" {
		// Cannot be taken back, so only on a connection that nobody else gets.
		return r.link.conn.Exec("SET readonly = 2")
	}
	return nil
}

// execute reads the statement's text and runs it.
func (r *run) execute(ctx context.Context, text io.Reader) (chdb.Stats, error) {
	head, err := io.ReadAll(io.LimitReader(text, statementLimit))
	if err != nil {
		return chdb.Stats{}, readError(err)
	}
	statement := sqltext.Analyze(head)
	if err := r.allowed(statement); err != nil {
		return chdb.Stats{}, err
	}
	var stats chdb.Stats
	switch {
	case statement.Insert != nil:
		stats, err = r.insert(statement.Insert, head, text)
	default:
		rest, readErr := io.ReadAll(text)
		if readErr != nil {
			return chdb.Stats{}, readError(readErr)
		}
		head = append(head, rest...)
		if statement.Selects() {
			stats, err = r.stream(ctx, statement, head)
		} else {
			stats, err = r.whole(statement, head)
		}
	}
	if err != nil {
		return stats, err
	}
	if r.session != nil {
		r.session.remember(statement)
	}
	// A SETTINGS clause should not outlast its statement; better not to rely on it.
	if statement.Insert != nil {
		head = head[:statement.Insert.Data]
	}
	r.traceless = (statement.Selects() || statement.Verb == "INSERT") && !settingsClause.Match(head)
	return stats, nil
}

var settingsClause = regexp.MustCompile(`(?i)\bSETTINGS\b`)

// allowed refuses what a server refuses and the embedded engine would do.
func (r *run) allowed(statement sqltext.Statement) error {
	switch {
	case statement.Second >= 0 && statement.Verb != "INSERT":
		return codeSyntax.errorf("Syntax error (Multi-statements are not allowed): failed at position %d (end of query)", statement.End+1)
	case statement.OutFile:
		return codeOutFile.errorf("INTO OUTFILE is not allowed")
	case statement.InFile:
		return codeUnknownQuery.errorf("Query has infile and was send directly to server")
	case r.q.readOnly && !statement.ReadOnly():
		return codeReadOnly.errorf("default: Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. You should use method POST for modifying queries")
	}
	return nil
}

// insert runs an INSERT with data, which the engine takes from a file.
func (r *run) insert(insert *sqltext.Insert, head []byte, rest io.Reader) (chdb.Stats, error) {
	path, remove, err := r.server.spool.save(io.MultiReader(bytes.NewReader(head[insert.Data:]), rest))
	if err != nil {
		return chdb.Stats{}, readError(err)
	}
	defer remove()
	_, stats, err := r.link.conn.Query(insert.FromFile(head, quote(path)), "Null", r.q.params...)
	return stats, withoutFile(err, path)
}

// withoutFile takes out of an error that the data came from a file.
func withoutFile(err error, path string) error {
	var e *chdb.Exception
	if !errors.As(err, &e) {
		return err
	}
	text := strings.ReplaceAll(e.Text, ": (in file/uri "+path+")", "")
	text = strings.ReplaceAll(text, ": While executing File: data for INSERT was parsed from file", "")
	return &chdb.Exception{Code: e.Code, Name: e.Name, Text: text}
}

// whole runs a statement that the engine does not stream: DDL and the small
// results of SHOW, DESCRIBE and their like.
func (r *run) whole(statement sqltext.Statement, text []byte) (chdb.Stats, error) {
	r.describe(firstOf(statement.Format, r.q.format))
	data, stats, err := r.link.conn.Query(text, r.q.format, r.q.params...)
	if err != nil {
		return stats, err
	}
	if len(data) > 0 {
		if r.reframes(statement) {
			if data, err = native.NewWriter(r.q.revision, nil).Rewrite(nil, data); err != nil {
				return stats, nativeError(err)
			}
		}
		_, err = r.out.Write(data)
	}
	return stats, err
}

// stream runs a SELECT and sends its result block by block.
func (r *run) stream(ctx context.Context, statement sqltext.Statement, text []byte) (chdb.Stats, error) {
	r.describe(firstOf(statement.Format, r.q.format))
	stream, err := r.link.conn.Stream(text, r.q.format, r.q.params...)
	if err != nil {
		return chdb.Stats{}, err
	}
	defer stream.Close()
	var blocks *native.Writer
	var buf []byte
	for {
		data, err := stream.Next()
		if err != nil || data == nil {
			return stream.Stats(), err
		}
		if r.reframes(statement) {
			if blocks == nil {
				blocks = native.NewWriter(r.q.revision, r.zones(statement, text, data))
			}
			if buf, err = blocks.Rewrite(buf[:0], data); err != nil {
				return stream.Stats(), nativeError(err)
			}
			data = buf
		}
		if _, err := r.out.Write(data); err != nil {
			return stream.Stats(), errGone
		}
		if ctx.Err() != nil {
			return stream.Stats(), errGone
		}
	}
}

// errGone says that the client is not there any more.
var errGone = errors.New("the client went away")

func (r *run) reframes(statement sqltext.Statement) bool {
	return r.q.revision > 0 && strings.EqualFold(firstOf(statement.Format, r.q.format), "Native")
}

// zones finds out the time zones of DateTime columns, which the engine leaves out
// of its blocks: what DESCRIBE says about the statement.
func (r *run) zones(statement sqltext.Statement, text, block []byte) map[string]string {
	if !native.NeedsZones(block, r.q.revision) || !statement.Selects() {
		return nil
	}
	query := bytes.Clone(text[:statement.End])
	if statement.FormatEnd > 0 {
		query = append(query[:statement.FormatStart], text[statement.FormatEnd:statement.End]...)
	}
	other, err := r.server.engine.take()
	if err != nil {
		return nil
	}
	defer r.server.engine.discard(other)
	if err := other.configure(r.q); err != nil {
		return nil
	}
	// On failure (a temporary table of this request, say) the columns go out
	// without zones.
	rows, _, err := other.conn.Query(fmt.Appendf(nil, "DESCRIBE TABLE (%s\n)", query), "TSVRaw", r.q.params...)
	if err != nil {
		return nil
	}
	zones := map[string]string{}
	for line := range strings.SplitSeq(string(rows), "\n") {
		if fields := strings.Split(line, "\t"); len(fields) > 1 && strings.HasPrefix(fields[1], "DateTime(") {
			zones[fields[0]] = fields[1]
		}
	}
	return zones
}

// describe sets the headers that tell a result's format.
func (r *run) describe(format string) {
	h := r.out.w.Header()
	setOwn(h, "Format", format)
	h.Set("Content-Type", contentType(format))
}

func contentType(format string) string {
	f := strings.ToLower(format)
	switch {
	case strings.HasPrefix(f, "jsoneachrow"), strings.HasPrefix(f, "jsoncompacteachrow"), strings.HasPrefix(f, "jsonstringseachrow"), strings.HasPrefix(f, "jsoncompactstringseachrow"), f == "jsonlines", f == "ndjson":
		return "application/x-ndjson; charset=UTF-8"
	case strings.HasPrefix(f, "json"):
		return "application/json; charset=UTF-8"
	case strings.HasPrefix(f, "tabseparated"), strings.HasPrefix(f, "tsv"):
		return "text/tab-separated-values; charset=UTF-8"
	case strings.HasPrefix(f, "csv"):
		return "text/csv; charset=UTF-8; header=" + csvHeader(f)
	case f == "xml":
		return "application/xml; charset=UTF-8"
	case f == "native", strings.HasPrefix(f, "rowbinary"), f == "parquet", strings.HasPrefix(f, "arrow"), f == "orc", f == "avro", f == "msgpack":
		return "application/octet-stream"
	}
	return "text/plain; charset=UTF-8"
}

func csvHeader(format string) string {
	if strings.Contains(format, "withnames") {
		return "present"
	}
	return "absent"
}

// readError is a failure to read the request's body.
func readError(err error) error {
	var exception *chdb.Exception
	if errors.As(err, &exception) {
		return err
	}
	return codeCannotReadAllData.errorf("Cannot read the request's body: %v", err)
}

func nativeError(err error) error {
	return codeNotImplemented.errorf("The local engine cannot send this result to a client with a protocol version: %v; ask for another FORMAT or leave client_protocol_version out", err)
}
