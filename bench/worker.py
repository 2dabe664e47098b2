"""One state backend in a process of its own, asked over its standard input.

It runs in the environment that the backend is installed in, and in a Meltano
project, whose settings say which backend that is. So the benchmark can let
several backends take turns:

    {"op": "update", "id": "a", "text": "…"}  →  {"ms": 1.9}

With --start it says how long the backend takes from Meltano being imported to
the first state read, and ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import resource
import sys
import time
import typing as t

import meltano.cli  # noqa: F401  Meltano imports all of this before any backend
from meltano.core.project import Project
from meltano.core.state_store import MeltanoState, StateBackend, state_store_manager_from_project_settings

if t.TYPE_CHECKING:
    from meltano.core.state_store.base import StateStoreManager


def main() -> None:
    manager = state_store_manager_from_project_settings(Project.find().settings)
    say: t.TextIO = sys.stdout
    for line in sys.stdin:
        try:
            answer: dict[str, t.Any] = do(manager, json.loads(line))
        except Exception as error:  # noqa: BLE001  whatever it is, who asked says it
            answer = {"error": f"{type(error).__name__}: {error}"}
        say.write(json.dumps(answer) + "\n")
        say.flush()
    manager.close()


def do(manager: StateStoreManager, request: dict[str, t.Any]) -> dict[str, t.Any]:
    name = request.get("id", "")
    state = json.loads(request["text"]) if "text" in request else {}
    began = time.perf_counter()
    match request["op"]:
        case "update":
            manager.update(MeltanoState(name, {}, state))
        case "partial":
            manager.update(MeltanoState(name, state, {}))
        case "set":
            manager.set(MeltanoState(name, {}, state))
        case "set_partial":
            manager.set(MeltanoState(name, state, {}))
        case "get":
            manager.get(name)
        case "lock":
            held.enter_context(manager.acquire_lock(name, retry_seconds=1))
        case "memory":
            return memory()
    return {"ms": (time.perf_counter() - began) * 1000}


held = contextlib.ExitStack()
"""Locks that are held until somebody ends us."""


def memory() -> dict[str, float]:
    """Give the most that this process and its children have used, in MB."""
    children = 0.0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            if int(fields["PPid"]) == os.getpid():
                children += int(fields["VmHWM"].split()[0]) / 1000
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return {"python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, "helper": children}


def start(uri: str) -> None:
    """Time the import, the construction and the first read."""
    entry = next(e for e in StateBackend.addon.installed if e.name == "clickhouse")
    began = time.perf_counter()
    manager = entry.load()(uri=uri)
    manager.get("a")
    print((time.perf_counter() - began) * 1000)
    manager.close()


if sys.argv[1:2] == ["--start"]:
    start(sys.argv[2])
else:
    main()
