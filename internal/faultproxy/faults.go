package faultproxy

import (
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Cut ends the connection before the server has seen the request.
func Cut(http.ResponseWriter, Request) bool { panic(http.ErrAbortHandler) }

// CutAfter lets the server do what it is asked, and ends the connection
// without telling.
func CutAfter(_ http.ResponseWriter, r Request) bool {
	r.effect()
	panic(http.ErrAbortHandler)
}

// effect has the server do what it is asked, whatever it says.
func (r Request) effect() {
	resp, err := r.Relay()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// CutHalfway gives the first third of the real answer and ends the connection.
func CutHalfway(out http.ResponseWriter, r Request) bool {
	resp, err := r.Relay()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	out.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	_, _ = out.Write(body[:len(body)/3])
	_ = http.NewResponseController(out).Flush()
	panic(http.ErrAbortHandler)
}

// Status answers with a status and a text, as a load balancer does.
func Status(status int, text string) Fault {
	return func(out http.ResponseWriter, _ Request) bool {
		out.Header().Set("Content-Type", "text/plain")
		out.WriteHeader(status)
		_, _ = io.WriteString(out, text)
		return true
	}
}

// Page answers with a web page.
func Page(status int, title string) Fault {
	return func(out http.ResponseWriter, _ Request) bool {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		out.WriteHeader(status)
		fmt.Fprintf(out, "<!DOCTYPE html><html><head><title>%s</title></head></html>", html.EscapeString(title))
		return true
	}
}

// What ClickHouse says with each code that matters here, to the letter, apart
// from names.
var said = map[int][2]string{
	60:  {"UNKNOWN_TABLE", "Table meltano.state does not exist"},
	81:  {"UNKNOWN_DATABASE", "Database meltano does not exist"},
	164: {"READONLY", "etl: Cannot execute query in readonly mode"},
	225: {"NO_ZOOKEEPER", "No ZooKeeper session"},
	242: {"TABLE_IS_READ_ONLY", "Table is in readonly mode since table metadata was not found in zookeeper"},
	252: {"TOO_MANY_PARTS", "Too many parts (3000 with average size of 1.00 KiB). Merges are processing significantly slower than inserts"},
	341: {"UNFINISHED", "Mutation is not finished because some replicas are inactive right now: r2. Mutation will be done asynchronously"},
	497: {"ACCESS_DENIED", "etl: Not enough privileges. To execute this query, it's necessary to have the grant INSERT(state_id, partial_state, completed_state, updated_at) ON meltano.state"},
	516: {"AUTHENTICATION_FAILED", "etl: Authentication failed: password is incorrect, or there is no user with such name"},
	999: {"KEEPER_EXCEPTION", "Coordination::Exception: Session expired"},
}

// Code answers with one of ClickHouse's exceptions, in its own words.
func Code(code int) Fault {
	s, ok := said[code]
	if !ok {
		panic(fmt.Sprintf("faultproxy: code %d has no words", code))
	}
	return Exception(code, s[0], s[1])
}

// Exception answers as ClickHouse does when a statement fails.
func Exception(code int, name, message string) Fault {
	return func(out http.ResponseWriter, _ Request) bool {
		out.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
		out.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		status := http.StatusInternalServerError
		if code == 516 {
			status = http.StatusForbidden
		}
		out.WriteHeader(status)
		fmt.Fprintf(out, "Code: %d. DB::Exception: %s (%s) (version 24.3.2.23 (official build))\n", code, message, name)
		return true
	}
}

// ExceptionAfter lets the server do what it is asked, and says that it failed.
func ExceptionAfter(code int) Fault {
	fail := Code(code)
	return func(out http.ResponseWriter, r Request) bool {
		r.effect()
		return fail(out, r)
	}
}

// Delay waits, then lets the next fault decide; nil is none.
func Delay(d time.Duration, next Fault) Fault {
	return func(out http.ResponseWriter, r Request) bool {
		time.Sleep(d)
		return next != nil && next(out, r)
	}
}

// Profile adds settings to each request that does not send its own, as a
// user's profile does on the server.
func Profile(settings map[string]string) Fault {
	return func(out http.ResponseWriter, r Request) bool {
		for name, value := range settings {
			if !r.Params.Has(name) {
				r.Params.Set(name, value)
			}
		}
		return r.Pass(out)
	}
}

// ReadOnly has the server treat the user as one with readonly=1 or 2 in his
// profile. With 1 it refuses every setting, too: the local engine would take
// some of them in the same request.
func ReadOnly(mode int) Fault {
	return func(out http.ResponseWriter, r Request) bool {
		if set := r.Settings(); mode == 1 && len(set) > 0 {
			name, _, _ := strings.Cut(set[0], "=")
			return Exception(164, "READONLY", "Cannot modify '"+name+"' setting in readonly mode")(out, r)
		}
		r.Params.Set("readonly", strconv.Itoa(mode))
		return r.Pass(out)
	}
}

// When keeps a fault to requests of one kind (Request.Kind) whose statement
// has all the words in it.
func When(kind string, f Fault, words ...string) Fault {
	return func(out http.ResponseWriter, r Request) bool {
		if r.Kind() != kind {
			return false
		}
		for _, w := range words {
			if !strings.Contains(r.Text, w) {
				return false
			}
		}
		return f(out, r)
	}
}

// Times lets a fault happen to the first n requests that it is asked of:
// When("INSERT", Times(2, Cut)).
func Times(n int, f Fault) Fault {
	var left atomic.Int64
	left.Store(int64(n))
	return func(out http.ResponseWriter, r Request) bool {
		return left.Add(-1) >= 0 && f(out, r)
	}
}

// Any gives each request to the first fault that answers it.
func Any(faults ...Fault) Fault {
	return func(out http.ResponseWriter, r Request) bool {
		for _, f := range faults {
			if f(out, r) {
				return true
			}
		}
		return false
	}
}

// Grants refuses every statement but those of the kinds, as a server does whose
// user has no more grants.
func Grants(kinds ...string) Fault {
	kinds = append(kinds, "hello", "probe", "SELECT")
	return func(out http.ResponseWriter, r Request) bool {
		return !slices.Contains(kinds, r.Kind()) &&
			Exception(497, "ACCESS_DENIED", "etl: Not enough privileges. To execute this query, it's necessary to have the grant "+grantFor(r.Kind())+" ON meltano.state")(out, r)
	}
}

func grantFor(kind string) string {
	if kind == "DELETE" {
		return "ALTER DELETE"
	}
	return kind
}

// Idle cuts a connection that is used again after it has idled for d, as a
// server does whose keep-alive time is shorter than the client's pauses.
func Idle(d time.Duration) Fault {
	var (
		mu   sync.Mutex
		used = map[string]time.Time{}
	)
	return func(_ http.ResponseWriter, r Request) bool {
		mu.Lock()
		last, again := used[r.Client]
		used[r.Client] = time.Now()
		mu.Unlock()
		if again && time.Since(last) > d {
			panic(http.ErrAbortHandler)
		}
		return false
	}
}

// Listen opens a port of 127.0.0.1 that speaks no HTTP of its own: from each
// connection it reads once, says what answer gives, and hangs up. Close ends it.
func Listen(answer func(said string) string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			n, _ := c.Read(b)
			_, _ = io.WriteString(c, answer(string(b[:n])))
			_ = c.Close()
		}
	}()
	return l, nil
}

// NativePort says what ClickHouse's native port says to HTTP; to anything else it hangs up.
func NativePort(said string) string {
	if strings.HasPrefix(said, "POST") {
		return "HTTP/1.0 400 Bad Request\r\n\r\nPort 9000 is for clickhouse-client program\r\nYou must use port 8123 for HTTP.\r\n"
	}
	return ""
}
