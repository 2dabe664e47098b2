"""Lines about whole processes: the tool beside curl, and beside `meltano state`."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import threading
import time
import typing as t

from backends import in_turn, state
from figures import MEMORY, TIME, Line, Stats
from local_engine import ROOT, Engine

if t.TYPE_CHECKING:
    from backends import Backend

READ, MANY = "3 read", "4 many states"
SCHEMA = "bench_many"
IDS = "SELECT DISTINCT state_id FROM {schema}.state ORDER BY state_id FORMAT TSVRaw"
STATES = (
    "SELECT state_id, partial_state, completed_state FROM {schema}.state FINAL ORDER BY state_id FORMAT JSONEachRow"
)
INSERT = "INSERT INTO {schema}.state (state_id, completed_state, updated_at) FORMAT JSONEachRow"


class Process:
    """A command that is run again and again, and what it took."""

    def __init__(self, command: list[str | pathlib.Path], env: dict[str, str], stdin: str | None = None) -> None:
        self.command = command
        self.env = {**os.environ, **env}
        self.stdin = stdin
        self.peak = 0.0  # MB

    def __call__(self) -> float:
        """Run it once and give its time in milliseconds."""
        with pathlib.Path(self.stdin or os.devnull).open() as stdin:
            began = time.perf_counter()
            process = subprocess.Popen(
                self.command, env=self.env, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            assert process.stderr is not None
            over = threading.Event()
            watch = threading.Thread(target=self._watch, args=(process.pid, over))
            watch.start()
            error = process.stderr.read()
            process.wait()
            took = (time.perf_counter() - began) * 1000
            over.set()
            watch.join()
        if process.returncode:
            msg = f"{self.command[:3]} failed: {error.decode()[-1000:]}"
            raise SystemExit(msg)
        return took

    def _watch(self, pid: int, over: threading.Event) -> None:
        """Note the most memory that the process has had.

        What wait4 gives is no use here: it counts the process that forked it.
        """
        while not over.wait(0.01):
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                name = pathlib.Path(self.command[0]).name
                if found := re.match(rf"Name:\s+{name}\n[\s\S]*VmHWM:\s+(\d+)", status):  # not before exec
                    self.peak = max(self.peak, int(found[1]) / 1000)


class Tools:
    """chstate and curl for one schema."""

    def __init__(self, engine: Engine, schema: str) -> None:
        self.engine = engine
        self.schema = schema
        self.env = {"MELTANO_STATE_BACKEND_URI": engine.uri, "MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA": schema}

    def chstate(self, *args: str) -> Process:
        return Process([ROOT / "bin" / "chstate", *args], self.env)

    def curl(self, statement: str, *args: str, stdin: str | None = None) -> Process:
        query = ["--url-query", "query=" + statement.format(schema=self.schema)]
        login = ["-H", f"X-ClickHouse-User: {self.engine.user}", "-H", f"X-ClickHouse-Key: {self.engine.password}"]
        return Process(["curl", "-sSf", *login, *query, *args, f"http://{self.engine.address}/"], {}, stdin)


def small(engine: Engine, ours: Backend, systemdb: Backend) -> t.Iterator[Line]:
    """Line 3: reading a few states, as one types it."""
    tools = Tools(engine, "bench_small")
    ours.env["MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA"] = "bench_small"
    for backend in (ours, systemdb):
        with backend.worker() as worker:
            for n in range(10):
                worker("set", id=f"dev:tap-{n}-to-target", text='{"singer_state":{"a":1}}')
    for name, args in (("list, 10 ids", ("list",)), ("get", ("get", "dev:tap-1-to-target"))):
        own, curl = in_turn(20, tools.chstate(*args), tools.curl(IDS if args == ("list",) else STATES))
        through, db = in_turn(3, *(lambda b=b, args=args: b.meltano("state", *args) for b in (ours, systemdb)))
        peers = {
            "curl": Stats.of(curl),
            "meltano state, our add-on": Stats.of(through),
            "meltano state, systemdb": Stats.of(db),
        }
        yield Line(READ, f"chstate {name}", TIME, Stats.of(own), at_most=40, peers=peers)
    yield Line(READ, "chstate doctor", TIME, Stats.of(in_turn(5, tools.chstate("doctor"))[0]), at_most=1000)
    ours.env["MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA"] = "bench_ours"
    engine.sql("DROP DATABASE IF EXISTS bench_small")


def many(engine: Engine, folder: pathlib.Path) -> t.Iterator[Line]:
    """Line 4: all states, at once."""
    tools = Tools(engine, SCHEMA)
    for count, rounds in ((100, 10), (10_000, 5), (100_000, 3)):
        big = count == 100_000
        size = f"{count:,} ids"
        export, rows = folder / f"export-{count}.json", folder / f"rows-{count}.jsonl"
        body = state(400)
        ids = [f"dev:tap-{n:06}-to-target" for n in range(count)]
        export.write_text(json.dumps({name: {"completed": json.loads(body), "partial": {}} for name in ids}))
        with rows.open("w") as out:
            out.writelines(
                json.dumps({"state_id": n, "completed_state": body, "updated_at": "2020-01-01"}) + "\n" for n in ids
            )

        engine.sql(f"DROP DATABASE IF EXISTS {SCHEMA}")
        load = tools.chstate("import", str(export))
        first = load()  # makes the tables
        engine.sql(f"CREATE TABLE {SCHEMA}.floor AS {SCHEMA}.state")
        insert = tools.curl(INSERT.replace(".state", ".floor"), "--data-binary", f"@{rows}")
        again, bare = in_turn(1 if big else 2, load, insert)
        yield Line(
            MANY,
            f"chstate import, {size}",
            TIME,
            Stats.of([first, *again]),
            at_most=10_000 if big else 0,
            peers={"curl": Stats.of(bare)},
        )
        yield Line(MANY, f"chstate import, {size}: peak", MEMORY, Stats.of([load.peak]))

        listing, curl = tools.chstate("list"), tools.curl(IDS)
        own, bare = in_turn(max(rounds, 5), listing, curl)
        yield Line(MANY, f"chstate list, {size}", TIME, Stats.of(own), "curl", Stats.of(bare), 2 if big else 0)
        if big:
            yield Line(MANY, f"chstate list, {size}: time", TIME, Stats.of(own), at_most=400)

        saving, curl = tools.chstate("export"), tools.curl(STATES)
        own, bare = in_turn(rounds, saving, curl)
        yield Line(
            MANY,
            f"chstate export, {size}",
            TIME,
            Stats.of(own),
            at_most=3000 if big else 0,
            peers={"curl": Stats.of(bare)},
        )
        yield Line(MANY, f"chstate export, {size}: peak", MEMORY, Stats.of([saving.peak]), at_most=64 if big else 0)

        clear = tools.chstate("clear", "--all", "--force")
        yield Line(MANY, f"chstate clear --all, {size}", TIME, Stats.of([clear()]))
    engine.sql(f"DROP DATABASE IF EXISTS {SCHEMA}")
