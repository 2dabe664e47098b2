"""A local engine for a measurement, or the server that CH_TEST_URI names."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import secrets
import subprocess
import tempfile
import typing as t
import urllib.parse
import urllib.request

if t.TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]


@dataclasses.dataclass
class Engine:
    """Where a ClickHouse listens for HTTP, and who logs in."""

    address: str  # HOST:PORT
    user: str
    password: str

    @property
    def uri(self) -> str:
        login = f"{urllib.parse.quote(self.user, safe='')}:{urllib.parse.quote(self.password, safe='')}"
        return f"clickhouse://{login}@{self.address}/default"

    def sql(self, statement: str) -> str:
        """Run a statement and give its answer as text."""
        headers = {"X-ClickHouse-User": self.user, "X-ClickHouse-Key": self.password}
        request = urllib.request.Request(f"http://{self.address}/", statement.encode(), headers)
        with urllib.request.urlopen(request) as answer:
            text: str = answer.read().decode()
        return text.strip()


@contextlib.contextmanager
def engine() -> Iterator[Engine]:
    """Start an engine, and end it afterwards."""
    if uri := os.environ.get("CH_TEST_URI"):
        parts = urllib.parse.urlsplit(uri)
        if "secure=true" in parts.query:
            raise SystemExit("the benchmark speaks plain HTTP only: CH_TEST_URI without secure=true")
        yield Engine(
            f"{parts.hostname}:{parts.port or 8123}",
            urllib.parse.unquote(parts.username or "default"),
            urllib.parse.unquote(parts.password or ""),
        )
        return
    password = secrets.token_hex(8)
    with tempfile.TemporaryDirectory() as data:
        process = subprocess.Popen(
            [
                ROOT / "bin" / "chstate-engine",
                "serve",
                *("--data", f"{data}/data", "--listen", "127.0.0.1:0"),
                *("--user", "etl", "--parent-pid", str(os.getpid())),
            ],
            env={**os.environ, "CHSTATE_ENGINE_PASSWORD": password},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield Engine(process.stdout.readline().split()[1].removeprefix("http://"), "etl", password)
        finally:
            process.terminate()
            process.wait()
