package main_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// curl runs curl and returns what it prints.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("curl", append([]string{"--silent", "--show-error", "--max-time", "20"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("curl %q: %v: %s", args, err, &stderr)
	}
	return string(out)
}

func TestCurlSettingsInURL(t *testing.T) {
	url := sharedEngine(t).url
	equal(t, "setting", curl(t, url+"/?max_threads=3&query=SELECT+getSetting('max_threads')"), "3\n")
	equal(t, "the next request's", strings.Contains(curl(t, url+"/?query=SELECT+changed+FROM+system.settings+WHERE+name='max_threads'"), "1"), false)
	contains(t, "unknown setting", curl(t, url+"/?nonsense=1&query=SELECT+1"), "Code: 115.", "UNKNOWN_SETTING")
	contains(t, "bad name", curl(t, url+"/?a%20b=1&query=SELECT+1"), "Code: 115.", "UNKNOWN_SETTING")
	contains(t, "limit", curl(t, url+"/?max_result_rows=10", "-d", "SELECT number FROM numbers(100)"), "Code: 396.")
	equal(t, "a value with quotes", curl(t, "-G", url, "--data-urlencode", `log_comment=it's a \ "comment"`, "--data-urlencode", "query=SELECT getSetting('log_comment') FORMAT TSVRaw"), "it's a \\ \"comment\"\n")
	equal(t, "parameter", curl(t, "-G", url, "--data-urlencode", `param_x=a\tb`, "--data-urlencode", "query=SELECT {x:String} = 'a\\tb'"), "1\n")
	contains(t, "raw tab in a parameter", curl(t, "-G", url, "--data-urlencode", "param_x=a\tb", "--data-urlencode", "query=SELECT {x:String}"), "Code: 457.")
}

func TestCurlDatabase(t *testing.T) {
	e := sharedEngine(t)
	e.query(t, "CREATE DATABASE `other db`")
	e.query(t, "CREATE TABLE `other db`.t (n UInt8) ENGINE = Memory")
	equal(t, "in the URL", curl(t, e.url+"/?database=other+db", "-d", "SELECT currentDatabase()"), "other db\n")
	equal(t, "as a header", curl(t, e.url, "-H", "X-ClickHouse-Database: other db", "-d", "SELECT count() FROM t"), "0\n")
	equal(t, "the next request's", curl(t, e.url, "-d", "SELECT currentDatabase()"), "default\n")
	out := curl(t, "-i", e.url+"/?database=nowhere", "-d", "SELECT 1")
	contains(t, "missing", out, "404 Not Found", "X-ClickHouse-Exception-Code: 81", "UNKNOWN_DATABASE")
	e.query(t, "DROP DATABASE `other db` SYNC")
	contains(t, "dropped", curl(t, e.url+"/?database=other+db", "-d", "SELECT 1"), "Code: 81.")
}

func TestRequestsLeaveNoTrace(t *testing.T) {
	e := start(t, t.TempDir(), nil)
	e.query(t, "CREATE DATABASE d")
	e.query(t, "CREATE TABLE d.t (n UInt8) ENGINE = Memory")
	look := "SELECT currentDatabase(), getSetting('max_threads') = 7, getSetting('log_comment'), (SELECT groupArray((name, value)) FROM system.settings WHERE changed) FORMAT TSVRaw"
	want := e.query(t, look)
	contains(t, "nothing set", want, "default\t0\t\t[", "input_format_parallel_parsing")
	for _, c := range []struct{ url, statement string }{
		{"?max_threads=7&log_comment=x", "SELECT 1"},
		{"?max_threads=7&database=d", "SELECT n FROM t"},
		{"?log_comment=it's&database=d", "INSERT INTO t VALUES (1)"},
		{"", "SELECT 1 SETTINGS max_threads = 7"},
		{"", "SET max_threads = 7"},
		{"", "USE d"},
		{"?readonly=1", "SELECT 1"},
		{"?compatibility=23.8", "SELECT 1"},
		{"?implicit_select=1&input_format_parallel_parsing=1", "SELECT 1"},
		{"?max_threads=7&nonsense=1", "SELECT 1"},
		{"?max_threads=7", "SELECT * FROM nowhere"},
		{"", "CREATE TEMPORARY TABLE mine (n UInt8)"},
	} {
		_, _ = post(e.url+"/"+c.url, c.statement) // some fail, and leave no trace either
		// More often than there are connections waiting.
		for range 6 {
			equal(t, "after "+c.url+" "+c.statement, e.query(t, look), want)
		}
	}
	if _, err := post(e.url, "SELECT * FROM mine"); err == nil {
		t.Error("a temporary table outlives its request")
	}
}

func TestCurlFormats(t *testing.T) {
	url := sharedEngine(t).url
	query := "SELECT 1 AS a, 'x' AS b"
	for format, want := range map[string]string{
		"TabSeparated":          "1\tx\n",
		"CSVWithNames":          "\"a\",\"b\"\n1,\"x\"\n",
		"JSONEachRow":           "{\"a\":1,\"b\":\"x\"}\n",
		"JSONCompactEachRow":    "[1, \"x\"]\n",
		"RowBinary":             "\x01\x01x",
		"Native":                "\x02\x01\x01a\x05UInt8\x01\x01b\x06String\x01x",
		"TabSeparatedWithNames": "a\tb\n1\tx\n",
		"Values":                "(1,'x')",
		"Vertical":              "Row 1:\n──────\na: 1\nb: x\n",
		"RowBinaryWithNames":    "\x02\x01a\x01b\x01\x01x",
		"TabSeparatedRaw":       "1\tx\n",
		"Null":                  "",
		"CustomSeparated":       "1\tx\n",
		"JSONStringsEachRow":    "{\"a\":\"1\",\"b\":\"x\"}\n",
		"JSONCompactColumns":    "[\n\t[1],\n\t[\"x\"]\n]\n",
		"JSONObjectEachRow":     "{\n\t\"row_1\": {\"a\":1,\"b\":\"x\"}\n}\n",
		"TSKV":                  "a=1\tb=x\n",
		"Markdown":              "| a | b |\n|-:|:-|\n| 1 | x |\n",
		"CSV":                   "1,\"x\"\n",
	} {
		equal(t, format+" by clause", curl(t, url, "-d", query+" FORMAT "+format), want)
		equal(t, format+" by default", curl(t, url+"/?default_format="+format, "-d", query), want)
	}
	out := curl(t, "-i", url+"/?default_format=JSON", "-d", query)
	contains(t, "JSON", out, "Content-Type: application/json; charset=UTF-8", "X-ClickHouse-Format: JSON", `"rows": 1`)
	out = curl(t, "-i", url, "-H", "X-ClickHouse-Format: CSV", "-d", query+" -- no FORMAT here\n")
	contains(t, "CSV by header", out, "Content-Type: text/csv; charset=UTF-8; header=absent", "X-ClickHouse-Format: CSV", "1,\"x\"\n")
}

func TestCurlHeaders(t *testing.T) {
	e := sharedEngine(t)
	out := curl(t, "-i", e.url+"/?query_id=my-id", "-d", "SELECT number FROM numbers(5)")
	contains(t, "SELECT", out, "HTTP/1.1 200 OK", "X-ClickHouse-Query-Id: my-id", "X-ClickHouse-Timezone: ",
		"X-ClickHouse-Server-Display-Name: ", "X-ClickHouse-Format: TabSeparated", `X-ClickHouse-Summary: {"read_rows":"5"`)
	e.query(t, "CREATE TABLE headers (n UInt8) ENGINE = Memory")
	contains(t, "INSERT", curl(t, "-i", e.url, "-d", "INSERT INTO headers VALUES (1), (2)"), `"written_rows":"2"`)
	contains(t, "session_timezone", curl(t, "-i", e.url+"/?session_timezone=Asia/Tokyo", "-d", "SELECT 1"), "X-ClickHouse-Timezone: Asia/Tokyo")
	out = curl(t, "-i", e.url, "-d", "SELECT * FROM no_such_table")
	contains(t, "error", out, "HTTP/1.1 404 Not Found", "X-ClickHouse-Exception-Code: 60", "X-ClickHouse-Query-Id: ",
		"\r\n\r\nCode: 60. DB::Exception: ", "(UNKNOWN_TABLE) (version ", "(official build))\n")
	contains(t, "syntax error", curl(t, "-i", e.url, "-d", "SELECT FROM FROM"), "HTTP/1.1 400 Bad Request", "X-ClickHouse-Exception-Code: 62")
	contains(t, "ping", curl(t, "-i", e.url+"/ping"), "200 OK", "\r\n\r\nOk.\n")
	contains(t, "root", curl(t, "-i", e.url+"/"), "200 OK", "\r\n\r\nOk.\n")
	contains(t, "other path", curl(t, "-i", e.url+"/nothing"), "404 Not Found", "There is no handle /nothing")
}

func TestCurlKeepAlive(t *testing.T) {
	url := sharedEngine(t).url + "/?query=SELECT+1"
	bad := sharedEngine(t).url + "/?query=SELEC+1"
	equal(t, "connections made", curl(t, "-o", "/dev/null", "-w", "%{num_connects} ", url, "-o", "/dev/null", bad, "-o", "/dev/null", url), "1 0 0 ")
}

func decode(t *testing.T, encoding string, body []byte) string {
	t.Helper()
	var (
		r   io.Reader
		err error
	)
	switch encoding {
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(body))
	case "br":
		r = brotli.NewReader(bytes.NewReader(body))
	case "lz4":
		r = lz4.NewReader(bytes.NewReader(body))
	case "zstd":
		r, err = zstd.NewReader(bytes.NewReader(body))
	}
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	return string(text)
}

func TestCurlCompression(t *testing.T) {
	e := sharedEngine(t)
	want := e.query(t, "SELECT number FROM numbers(20000)")
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd", "lz4"} {
		req, err := http.NewRequest(http.MethodPost, e.url+"/?enable_http_compression=1", strings.NewReader("SELECT number FROM numbers(20000)"))
		must(t, err)
		req.Header.Set("Accept-Encoding", encoding)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		_ = resp.Body.Close()
		equal(t, "Content-Encoding", resp.Header.Get("Content-Encoding"), encoding)
		equal(t, encoding+" decoded", decode(t, encoding, body), want+"\n")
	}
	equal(t, "curl --compressed", strings.TrimSpace(curl(t, "--compressed", e.url+"/?enable_http_compression=1", "-d", "SELECT number FROM numbers(20000)")), want)
	plain := curl(t, "-i", "-H", "Accept-Encoding: gzip", e.url, "-d", "SELECT 1")
	equal(t, "compressed without being asked to", strings.Contains(plain, "Content-Encoding"), false)

	e.query(t, "CREATE TABLE zipped (n UInt64) ENGINE = MergeTree ORDER BY n")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(w, "INSERT INTO zipped FORMAT TSV\n"+want+"\n")
	must(t, w.Close())
	cmd := exec.Command("curl", "-sS", "-H", "Content-Encoding: gzip", "--data-binary", "@-", e.url)
	cmd.Stdin = &zipped
	out, err := cmd.CombinedOutput()
	must(t, err)
	equal(t, "answer", string(out), "")
	equal(t, "sum", e.query(t, "SELECT count(), sum(n) FROM zipped"), "20000\t199990000")
	contains(t, "not gzip", curl(t, e.url, "-H", "Content-Encoding: gzip", "-d", "SELECT 1"), "Code: 271.")
	contains(t, "unknown", curl(t, e.url, "-H", "Content-Encoding: rot13", "-d", "SELECT 1"), "Code: 48.")
	contains(t, "not ClickHouse's frames", curl(t, e.url+"/?decompress=1", "-d", "SELECT 1"), "Code: 271.")
}

func TestCurlInsert(t *testing.T) {
	e := sharedEngine(t)
	e.query(t, "CREATE TABLE inserts (id UInt32, text String DEFAULT 'none') ENGINE = MergeTree ORDER BY id")
	for _, c := range []struct{ query, body string }{
		{"", "INSERT INTO inserts VALUES (1, 'semi;colon\nand line')"},
		{"", "INSERT INTO inserts (id) VALUES (2)"},
		{"INSERT INTO inserts FORMAT JSONEachRow", "{\"id\": 3, \"text\": \"a\\nb\"}\n{\"id\": 4}\n"},
		{"INSERT INTO inserts FORMAT RowBinary", "\x05\x00\x00\x00\x04\x00\n\r\xff"},
		{"INSERT INTO inserts FORMAT Native", "\x02\x01\x02id\x06UInt32\x06\x00\x00\x00\x04text\x06String\x03a\nb"},
		{"INSERT INTO inserts SETTINGS async_insert = 0 FORMAT CSV", "7,\"with \"\"quotes\"\"\"\r\n"},
		{"", "INSERT INTO inserts SETTINGS max_insert_threads = 1 FORMAT TSV\n8\ttab\\tescaped\n"},
		{"INSERT INTO inserts SELECT id + 1, upper(text) FROM input('id UInt32, text String') FORMAT CSV", "8,select"},
		{"", "INSERT INTO inserts SELECT 10, 'selected'"},
		{"", "/* a comment; */ INSERT INTO TABLE default.`inserts` (`id`, text) /* FORMAT */ VALUES (11, 'commented') -- the end"},
		{"INSERT INTO inserts FORMAT JSONEachRow", ""},
		{"INSERT INTO inserts FORMAT Native", ""},
	} {
		req, err := http.NewRequest(http.MethodPost, e.url, strings.NewReader(c.body))
		must(t, err)
		if c.query != "" {
			q := req.URL.Query()
			q.Set("query", c.query)
			req.URL.RawQuery = q.Encode()
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		_ = resp.Body.Close()
		equal(t, c.query+c.body, string(text), "")
	}
	equal(t, "rows", e.query(t, "SELECT id, text FROM inserts ORDER BY id FORMAT JSONCompactEachRow"), strings.Join([]string{
		`[1, "semi;colon\nand line"]`, `[2, "none"]`, `[3, "a\nb"]`, `[4, "none"]`, "[5, \"\\u0000\\n\\r\xff\"]", `[6, "a\nb"]`,
		`[7, "with \"quotes\""]`, `[8, "tab\tescaped"]`, `[9, "SELECT"]`, `[10, "selected"]`, `[11, "commented"]`}, "\n"))
}

func TestCurlLargeInsert(t *testing.T) {
	e := sharedEngine(t)
	e.query(t, "CREATE TABLE large (text String) ENGINE = MergeTree ORDER BY ()")
	text := strings.Repeat("0123456789abcde\n", 20<<20/16)
	body := fmt.Sprintf("INSERT INTO large FORMAT RawBLOB\n%s", text)
	_, err := post(e.url, body)
	must(t, err)
	equal(t, "length", e.query(t, "SELECT length(text) FROM large"), fmt.Sprint(len(text)))
	got := e.query(t, "SELECT text FROM large FORMAT RawBLOB")
	equal(t, "the same text", got+"\n" == text, true)
}

func TestCurlReadOnlyGet(t *testing.T) {
	e := sharedEngine(t)
	e.query(t, "CREATE TABLE kept (n UInt8) ENGINE = Memory")
	for _, statement := range []string{"DROP TABLE kept", "INSERT INTO kept VALUES (1)", "TRUNCATE TABLE kept", "CREATE TABLE more (n UInt8) ENGINE = Memory", "INSERT INTO kept SELECT 1"} {
		for _, session := range []string{"", "reading"} {
			out := curl(t, "-i", "-G", e.url, "--data-urlencode", "query="+statement, "--data-urlencode", "session_id="+session)
			contains(t, statement, out, "X-ClickHouse-Exception-Code: 164", "READONLY", "method GET implies readonly")
		}
	}
	equal(t, "rows", curl(t, e.url+"/?query=SELECT+count()+FROM+kept"), "0\n")
	contains(t, "lifting it", curl(t, e.url+"/?query=SET+readonly=0"), "Code: 164.")
	contains(t, "readonly=1 in a POST", curl(t, e.url+"/?readonly=1", "-d", "INSERT INTO kept VALUES (1)"), "Code: 164.")
}

func TestCurlWaitEndOfQuery(t *testing.T) {
	url := sharedEngine(t).url
	late := "SELECT number, throwIf(number = 2000000, 'late') FROM numbers(3000000) SETTINGS max_block_size = 65536, max_threads = 1"
	out := curl(t, "-i", url+"/?wait_end_of_query=1", "-d", late)
	contains(t, "late error", out, "HTTP/1.1 500 ", "X-ClickHouse-Exception-Code: 395", "\r\n\r\nCode: 395.")
	out = curl(t, "-D", "-", "-o", "/dev/null", url+"/?wait_end_of_query=1", "-d", "SELECT number FROM numbers(1000000)")
	contains(t, "summary", out, `"read_rows":"1000000"`, "Content-Length: 6888890")
	// More than is held in memory.
	equal(t, "size", curl(t, "-o", "/dev/null", "-w", "%{size_download}", url+"/?wait_end_of_query=1", "-d", "SELECT repeat('x', 999) FROM numbers(40000)"), "40000000")
}

func TestCurlLateErrorCutsTheAnswer(t *testing.T) {
	cmd := exec.Command("curl", "-sS", "--max-time", "20", sharedEngine(t).url, "-d",
		"SELECT number, throwIf(number = 2000000, 'late') FROM numbers(3000000) SETTINGS max_block_size = 65536, max_threads = 1")
	out, err := cmd.Output()
	if err == nil {
		t.Error("curl takes the answer for whole")
	}
	contains(t, "end", string(out[max(0, len(out)-1000):]), "\r\n__exception__\r\n", "Code: 395. DB::Exception: late")
}

func TestCurlSessions(t *testing.T) {
	url := sharedEngine(t).url
	in := func(session, statement string, more ...string) string {
		return curl(t, url+"/?session_id="+session+strings.Join(more, ""), "-d", statement)
	}
	equal(t, "create", in("one", "CREATE TEMPORARY TABLE mine (n UInt8)"), "")
	equal(t, "insert", in("one", "INSERT INTO mine VALUES (7)"), "")
	equal(t, "select", in("one", "SELECT n FROM mine"), "7\n")
	contains(t, "another session", in("two", "SELECT n FROM mine"), "Code: 60.")
	equal(t, "set", in("one", "SET max_threads = 5, log_comment = 'a, b'"), "")
	equal(t, "it lasts", in("one", "SELECT getSetting('max_threads')"), "5\n")
	equal(t, "the URL's setting", in("one", "SELECT getSetting('max_threads')", "&max_threads=2"), "2\n")
	equal(t, "does not last", in("one", "SELECT getSetting('max_threads'), getSetting('log_comment')"), "5\ta, b\n")
	equal(t, "another session's", in("two", "SELECT getSetting('max_threads') = 5"), "0\n")
	equal(t, "use", in("one", "USE system"), "")
	equal(t, "the URL's database", in("one", "SELECT currentDatabase()", "&database=default"), "default\n")
	equal(t, "the session's", in("one", "SELECT currentDatabase()"), "system\n")
	contains(t, "must exist", in("three", "SELECT 1", "&session_check=1"), "Code: 372.")
	contains(t, "too long", in("three", "SELECT 1", "&session_timeout=99999"), "Code: 374.")
	equal(t, "close", in("one", "SELECT 1", "&close_session=1"), "1\n")
	contains(t, "closed", in("one", "SELECT 1", "&session_check=1"), "Code: 372.")
	equal(t, "short", in("short", "SELECT 1", "&session_timeout=1"), "1\n")

	var wg sync.WaitGroup
	wg.Go(func() { _, _ = post(url+"/?session_id=busy", "SELECT sleep(1)") })
	time.Sleep(300 * time.Millisecond)
	contains(t, "busy", curl(t, "-i", url+"/?session_id=busy", "-d", "SELECT 1"), "X-ClickHouse-Exception-Code: 373", "Session busy is locked by a concurrent client")
	wg.Wait()
	equal(t, "free again", in("busy", "SELECT 1"), "1\n")
	time.Sleep(500 * time.Millisecond)
	contains(t, "expired", in("short", "SELECT 1", "&session_check=1"), "Code: 372.")
}

func TestCurlSameQueryID(t *testing.T) {
	url := sharedEngine(t).url + "/?query_id=twice"
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = post(url, "SELECT sleep(1)") })
	time.Sleep(300 * time.Millisecond)
	contains(t, "second", curl(t, url, "-d", "SELECT 1"), "Code: 216.")
	wg.Wait()
	equal(t, "afterwards", curl(t, url, "-d", "SELECT 1"), "1\n")
}

func TestClientVersionReframesNative(t *testing.T) {
	url := sharedEngine(t).url + "/?default_format=Native&client_protocol_version="
	query := "SELECT toDateTime(0, 'Europe/Berlin') AS a"
	info := "\x01\x00\x02\xff\xff\xff\xff\x00"
	equal(t, "none", curl(t, url+"0", "-d", query), "\x01\x01\x01a\x08DateTime\x00\x00\x00\x00")
	equal(t, "without zones", curl(t, url+"54000", "-d", query), info+"\x01\x01\x01a\x08DateTime\x00\x00\x00\x00")
	equal(t, "with zones", curl(t, url+"54405", "-d", query), info+"\x01\x01\x01a\x19DateTime('Europe/Berlin')\x00\x00\x00\x00")
	equal(t, "with flags", curl(t, url+"54460", "-d", query+" FORMAT Native"), info+"\x01\x01\x01a\x19DateTime('Europe/Berlin')\x00\x00\x00\x00\x00")
	contains(t, "no number", curl(t, url+"new", "-d", query), "Code: 36.")
}

func TestCurlExternalTables(t *testing.T) {
	url := sharedEngine(t).url
	data := t.TempDir() + "/ids.csv"
	must(t, os.WriteFile(data, []byte("1,\"['a','b']\"\n2,\"[]\"\n"), 0o600))
	file := "ids=@" + data
	equal(t, "types in the URL", curl(t, "-F", file, url+"/?ids_types=UInt8,Array(String)&ids_format=CSV&query=SELECT+sum(_1),sum(length(_2))+FROM+ids"), "3\t2\n")
	equal(t, "structure in the form", curl(t, "-F", file, "-F", "ids_structure=id UInt8, names Array(String)", "-F", "ids_format=CSV",
		"-F", "query=SELECT id, {x:String} FROM ids ORDER BY id", "-F", "param_x=y", url), "1\ty\n2\ty\n")
	contains(t, "no structure", curl(t, "-F", file, url+"/?query=SELECT+1"), "Code: 36.", "ids_structure")
	contains(t, "wrong data", curl(t, "-F", file, url+"/?ids_types=UInt8,UInt8&ids_format=CSV&query=SELECT+1"), "Code: 27.")
}
