"""A stub before the real server, which plays a server or a proxy in trouble."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import threading
import typing as t
import urllib.parse

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What ClickHouse says with each code.
SAID = {
    164: ("READONLY", "Cannot modify 'x' setting in readonly mode"),
    225: ("NO_ZOOKEEPER", "No ZooKeeper session"),
    242: ("TABLE_IS_READ_ONLY", "Table is in readonly mode since table metadata was not found in zookeeper"),
    252: ("TOO_MANY_PARTS", "Too many parts (3000)"),
    341: ("UNFINISHED", "Mutation is not finished because some replicas are inactive right now: r2"),
    497: (
        "ACCESS_DENIED",
        "etl: Not enough privileges. To execute this query, it's necessary to have the grant INSERT ON meltano.state",
    ),
    999: ("KEEPER_EXCEPTION", "Session expired"),
}


class Front(http.server.BaseHTTPRequestHandler):
    """Relays each request to the real server, unless the fault answers it."""

    protocol_version = "HTTP/1.1"
    target: t.ClassVar[str]
    fault: t.ClassVar[Callable[[Front], bool]]
    seen: t.ClassVar[list[str]]

    text: str
    body: bytes

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            self.body = b"".join(iter(self._chunk, b""))
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.text = query.get("query", [self.body.decode(errors="replace")])[0]
        self.seen.append(self.text)
        if not type(self).fault(self):
            self.answer(*self.relay())

    def do_GET(self) -> None:
        self.do_POST()

    @property
    def word(self) -> str:
        """The statement's first word."""
        return (self.text.split() or ["?"])[0]

    def settings(self) -> list[str]:
        """Give the names of the settings that the request carries."""
        names = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        other = {"query", "default_format", "client_protocol_version", "wait_end_of_query"}
        return [n for n in names if n not in other and not n.startswith("param_")]

    def relay(self) -> tuple[int, list[tuple[str, str]], bytes]:
        """Let the real server do it; give its answer."""
        kept = {
            k: v
            for k, v in self.headers.items()
            if k.lower().startswith(("x-clickhouse", "authorization", "content-e"))
        }
        connection = http.client.HTTPConnection(self.target)
        parts = urllib.parse.urlsplit(self.path)
        connection.request("POST", f"/?{parts.query}", self.body, kept)
        got = connection.getresponse()
        data = got.read()
        connection.close()
        headers = [(k, v) for k, v in got.getheaders() if k.lower().startswith(("x-clickhouse", "content-type"))]
        return got.status, headers, data

    def answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> bool:
        """Answer; give True, as a fault that has answered does."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        return True

    def code(self, code: int) -> bool:
        """Answer with an exception of ClickHouse's."""
        name, message = SAID[code]
        text = f"Code: {code}. DB::Exception: {message}. ({name}) (version 24.3.2.23 (official build))\n"
        return self.answer(500, [("X-ClickHouse-Exception-Code", str(code))], text.encode())

    def cut(self) -> bool:
        """End the connection without an answer."""
        self.close_connection = True
        return True

    def _chunk(self) -> bytes:
        data = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return data

    def log_message(self, *args: object) -> None: ...


class Running(t.NamedTuple):
    """A running stub."""

    port: int
    handler: type[Front]

    def on(self, fault: Callable[[Front], bool]) -> None:
        """Set what it does with each request."""
        self.handler.fault = staticmethod(fault)

    def take(self) -> list[str]:
        """Give the statements since the last time."""
        seen, self.handler.seen = self.handler.seen, []
        return seen


@contextlib.contextmanager
def running(target: str) -> Iterator[Running]:
    """Run a stub before the server at target ("host:port")."""
    handler = type("Handler", (Front,), {"target": target, "fault": staticmethod(lambda _: False), "seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Running(server.server_address[1], handler)
        finally:
            server.shutdown()


def times(n: int, fault: Callable[[Front], bool]) -> Callable[[Front], bool]:
    """Let a fault happen n times."""
    left = [None] * n

    def limited(request: Front) -> bool:
        try:
            left.pop()
        except IndexError:
            return False
        return fault(request)

    return limited
