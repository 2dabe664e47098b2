"""A local engine for a measurement."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import subprocess
import tempfile
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]


@contextlib.contextmanager
def engine() -> Iterator[tuple[str, str]]:
    """Start an engine, and give its HOST:PORT and the password of its user etl."""
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
            yield process.stdout.readline().split()[1].removeprefix("http://"), password
        finally:
            process.terminate()
            process.wait()
