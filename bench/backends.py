"""Lines through state backends: ours, Meltano's own, and a peer, each in a process of its own, taking turns."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import typing as t

from figures import MEMORY, TIME, Line, Stats
from local_engine import ROOT, Engine

if t.TYPE_CHECKING:
    import pathlib

PLUGINS = ROOT / "python" / "tests" / "plugins"
UPDATE, RUN, READ, SIZE, LOCK = "1 update", "2 meltano run", "3 read", "5 state size", "7 lock"

PROJECT = """\
default_environment: dev
project_id: 6d1f5f8e-0000-4000-8000-000000000000
environments: [{{name: dev}}]
plugins:
  extractors:
  - name: tap-rows
    namespace: tap_rows
    executable: {tap}
    capabilities: [state]
    settings: [{{name: path, value: rows.txt}}, {{name: states, kind: integer, value: 1}}]
  loaders:
  - name: target-rows
    namespace: target_rows
    executable: {target}
    settings: [{{name: path, value: out.txt}}]
"""


class BackendError(Exception):
    """A backend failed, so there is no figure."""


class Backend:
    """A state backend in a Meltano project of its own."""

    def __init__(self, name: str, python: pathlib.Path, folder: pathlib.Path, uri: str) -> None:
        self.name = name
        self.python = python
        self.root = folder / name
        self.root.mkdir()
        (self.root / "meltano.yml").write_text(PROJECT.format(tap=PLUGINS / "tap.py", target=PLUGINS / "target.py"))
        (self.root / "rows.txt").write_text("1\n")
        self.env = {
            **os.environ,
            "MELTANO_STATE_BACKEND_URI": uri.replace("{root}", str(self.root)),
            "MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA": f"bench_{name}",
            "MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false",
            "MELTANO_CLI_DISABLE_VERSION_CHECK": "true",
            "MELTANO_CLI_LOG_LEVEL": "error",
        }

    def meltano(self, *args: str, **env: str) -> float:
        """Run Meltano and give its time in milliseconds."""
        began = time.perf_counter()
        done = subprocess.run(
            [self.python.parent / "meltano", *args],
            cwd=self.root,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            msg = f"meltano {' '.join(args)} with {self.name} failed:\n{done.stderr[-2000:]}"
            raise BackendError(msg)
        return (time.perf_counter() - began) * 1000

    @contextlib.contextmanager
    def worker(self) -> t.Iterator[Worker]:
        with contextlib.ExitStack() as stack:
            worker = Worker(self)
            stack.callback(worker.end)
            yield worker


class Worker:
    """The process of worker.py."""

    def __init__(self, backend: Backend) -> None:
        self.name = backend.name
        self.process = subprocess.Popen(
            [backend.python, ROOT / "bench" / "worker.py"],
            cwd=backend.root,
            env=backend.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, op: str, **fields: t.Any) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"op": op, **fields}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer: dict[str, t.Any] = json.loads(line) if line else {"error": "it has ended"}
        if "error" in answer:
            msg = f"{op} through {self.name} failed: {answer['error']}"
            raise BackendError(msg)
        return answer

    def __call__(self, op: str, **fields: t.Any) -> float:
        return self.ask(op, **fields)["ms"]

    def end(self) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def bare_insert(engine: Engine, program: pathlib.Path, text: str) -> t.Iterator[t.Callable[[], float]]:
    """Start the program that inserts the row bare, and give the call of it."""
    schema = "bench_floor"
    engine.sql(f"DROP DATABASE IF EXISTS {schema}")
    engine.sql(f"CREATE DATABASE {schema}")
    process = subprocess.Popen(
        [program, engine.address, engine.user, f"{schema}.state", text],
        env={**os.environ, "CLICKHOUSE_PASSWORD": engine.password},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def insert() -> float:
        stdin.write("\n")
        stdin.flush()
        return int(stdout.readline()) / 1e3

    try:
        yield insert
    finally:
        stdin.close()
        process.wait()
        engine.sql(f"DROP DATABASE {schema}")


def in_turn(rounds: int, *calls: t.Callable[[], float]) -> list[list[float]]:
    """Call each in turn; the first tenth of the rounds warms up. What is slow takes part in fewer rounds."""
    figures: list[list[float]] = [[] for _ in calls]
    spent = [0.0] * len(calls)
    for turn in range(rounds + rounds // 10):
        for i, call in enumerate(calls):
            if spent[i] > 10_000 and len(figures[i]) >= 3:
                continue
            took = call()
            spent[i] += took
            if turn >= rounds // 10:
                figures[i].append(took)
    return figures


def state(size: int) -> str:
    """Give a Singer state of about that many bytes, of many streams."""
    streams: dict[str, t.Any] = {}
    entry = {"replication_key": "updated_at", "replication_key_value": "2026-01-01T00:00:00Z"}
    for n in range(max(1, size // 107)):
        streams[f"stream_{n:06}"] = entry
    return json.dumps({"singer_state": {"bookmarks": streams}}, separators=(",", ":"))


def updates(engine: Engine, floor: pathlib.Path, ours: Backend, others: list[Backend]) -> t.Iterator[Line]:
    """Lines 1 and 3: one call."""
    text = state(1000)
    with contextlib.ExitStack() as stack:
        insert = stack.enter_context(bare_insert(engine, floor, text))
        us = stack.enter_context(ours.worker())
        them = {b.name: stack.enter_context(b.worker()) for b in others}

        def line(part: str, name: str, at_most: float, op: str, rounds: int, **fields: t.Any) -> Line:
            calls = [lambda w=w: w(op, **fields) for w in (us, *them.values())]
            bare, own, *rest = in_turn(rounds, insert, *calls)
            peers = {name: Stats.of(figures) for name, figures in zip(them, rest, strict=True)}
            line = Line(part, f"add-on: {name}", TIME, Stats.of(own), peers=peers)
            if part == UPDATE:
                line.beside, line.floor, line.at_most = "bare INSERT", Stats.of(bare), at_most
            return line

        yield line(UPDATE, "complete, 1 kB, within a run", 1.5, "update", 200, id="run", text=text)
        yield line(UPDATE, "partial, 1 kB, within a run", 0, "partial", 100, id="run", text=text)
        ids = [f"first {n}" for n in range(30)]
        for name in ids:
            us("set", id=name, text=text)
        pairs = [(insert(), us("update", id=name, text=text)) for name in ids]
        bare, own = (Stats.of(pair[i] for pair in pairs) for i in (0, 1))
        yield Line(UPDATE, "add-on: first of a run, 1 kB", TIME, own, "bare INSERT", bare, 8)
        yield line(READ, "get, 1 kB", 0, "get", 100, id="run")


def starts(engine: Engine, backends: list[Backend]) -> t.Iterator[Line]:
    """Line 3: from Meltano being imported to the first state read."""

    def start(backend: Backend) -> float:
        command: list[str | pathlib.Path] = [backend.python, ROOT / "bench" / "worker.py", "--start", engine.uri]
        done = subprocess.run(command, cwd=backend.root, env=backend.env, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])

    own, *rest = in_turn(10, *(lambda b=b: start(b) for b in backends))
    peers = {b.name: Stats.of(figures) for b, figures in zip(backends[1:], rest, strict=True)}
    yield Line(READ, "add-on: import, construct, first get", TIME, Stats.of(own), at_most=50, peers=peers)


def sizes(ours: Backend, others: list[Backend]) -> t.Iterator[Line]:
    """Line 5, and what an idle helper takes."""
    with ours.worker() as worker:
        worker("get", id="a")
        yield Line(SIZE, "add-on: the helper, idle", MEMORY, Stats.of([worker.ask("memory")["helper"]]), at_most=20)
    for name, size, rounds in (
        ("1 kB", 1_000, 30),
        ("100 kB", 100_000, 20),
        ("1 MB", 1_000_000, 5),
        ("14 MB", 14_000_000, 2),
    ):
        text, part = state(size), state(200)
        with contextlib.ExitStack() as stack:
            workers = {b.name: stack.enter_context(b.worker()) for b in (ours, *others)}
            for w in workers.values():
                w("update", id="a", text=part)  # makes what a first write makes
            for title, op, value in (
                ("set", "set", text),
                ("get", "get", None),
                ("partial merge onto", "partial", part),
            ):
                fields: dict[str, t.Any] = {"id": "a"} if value is None else {"id": "a", "text": value}
                if op == "partial":
                    for w in workers.values():
                        w("set_partial", id="a", text=text)
                calls = [lambda w=w, op=op, fields=fields: w(op, **fields) for w in workers.values()]
                own, *rest = in_turn(rounds, *calls)
                peers = {b.name: Stats.of(figures) for b, figures in zip(others, rest, strict=True)}
                yield Line(SIZE, f"add-on: {title} {name}", TIME, Stats.of(own), peers=peers)
            peak = workers[ours.name].ask("memory")
            yield Line(SIZE, f"add-on: peak of the helper, {name}", MEMORY, Stats.of([peak["helper"]]))
            peers = {b.name: Stats.of([workers[b.name].ask("memory")["python"]]) for b in others}
            yield Line(SIZE, f"add-on: peak of Python, {name}", MEMORY, Stats.of([peak["python"]]), peers=peers)


def killed(ours: Backend) -> t.Iterator[Line]:
    """Line 7: the holder's process is killed, its helper is not."""
    figures = []
    with ours.worker() as waiter:
        waiter("get", id="a")
        for n in range(5):
            with ours.worker() as holder:
                holder("lock", id=f"killed {n}")
                holder.process.send_signal(signal.SIGKILL)
                figures.append(waiter("update", id=f"killed {n}", text=state(200)))
    yield Line(LOCK, "add-on: freed after the holder's process is killed", TIME, Stats.of(figures), at_most=1000)


PATIENCE = 20
"""Seconds that another backend's run may take; after one that took longer it is left out of the longer ones."""


def runs(ours: Backend, systemdb: Backend, others: list[Backend], *, full: bool) -> t.Iterator[Line]:
    """Line 2: whole runs. The others take part in two lengths of them, until one run takes too long."""
    slow: set[Backend] = set()
    for messages, rounds in ((1, 3), (50, 3), (200, 3), (500, 5 if full else 3)):
        backends = [systemdb, ours]
        if full or messages in (50, 500):
            backends += [b for b in others if b not in slow]
        for backend in backends:  # not for fewer rounds: the first run of a project makes its database
            if messages == 1 or backend in others:
                backend.meltano("run", "tap-rows", "target-rows", TAP_ROWS_STATES="1")

        def run(backend: Backend, messages: int = messages) -> float:
            return backend.meltano("run", "tap-rows", "target-rows", TAP_ROWS_STATES=str(messages - 1)) / 1000

        took: dict[Backend, list[float]] = {b: [] for b in backends}
        for _ in range(rounds):
            for backend in backends:
                if backend not in slow:
                    took[backend].append(run(backend))
                    if backend in others and took[backend][-1] > PATIENCE:
                        slow.add(backend)
        own, clickhouse = Stats.of(took[systemdb]), Stats.of(took[ours])
        peers = {b.name: Stats.of(took[b]) for b in backends[2:]}
        allowed = own.median + 1.5 if messages == 200 else max(1.2 * own.median, own.median + 2)
        yield Line(
            RUN,
            f"meltano run with {messages} STATE messages",
            "s",
            clickhouse,
            "systemdb",
            own,
            allowed / own.median,
            peers,
        )
