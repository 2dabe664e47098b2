"""What the add-on costs: updates beside bare INSERTs of the same row, and its start.

Needs bin/chstate-engine, Go, and an environment in which the add-on is installed:

    python bench/addon_update.py [ROUNDS]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from meltano.core.state_store.base import MeltanoState

from local_engine import ROOT, engine
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager

STATE = {"singer_state": {"bookmarks": {f"stream_{i}": {"updated_at": "2026-01-01T00:00:00Z"} for i in range(20)}}}

START = """
import sys, time
import meltano.cli, meltano.core.project, meltano.core.state_store
began = time.perf_counter()
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager
manager = ClickhouseStateStoreManager(sys.argv[1])
manager.get("a")
print(time.perf_counter() - began)
"""


def milliseconds(seconds: list[float]) -> str:
    ordered = sorted(s * 1000 for s in seconds)
    return f"median {statistics.median(ordered):6.2f} ms   p90 {ordered[int(len(ordered) * 0.9)]:6.2f} ms"


def timed(manager: ClickhouseStateStoreManager, state_id: str = "dev:a-to-b") -> float:
    began = time.perf_counter()
    manager.update(MeltanoState(state_id, {}, STATE))
    return time.perf_counter() - began


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with engine() as (address, password), tempfile.TemporaryDirectory() as folder:
        uri = f"clickhouse://etl:{password}@{address}/default"
        manager = ClickhouseStateStoreManager(uri)
        timed(manager)  # makes the tables
        program = f"{folder}/floor"
        subprocess.run(["go", "build", "-o", program, "./bench/floor"], cwd=ROOT, check=True)
        floor = subprocess.Popen(
            [program, address, "etl", "meltano.state", json.dumps(STATE)],
            env={**os.environ, "CLICKHOUSE_PASSWORD": password},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        def bare() -> float:
            assert floor.stdin is not None
            assert floor.stdout is not None
            floor.stdin.write("\n")
            floor.stdin.flush()
            return int(floor.stdout.readline()) / 1e6

        for _ in range(20):
            bare()
            timed(manager)
        pairs = [(bare(), timed(manager)) for _ in range(rounds)]  # in turn, so that both see the same machine
        inserts, updates = ([pair[i] for pair in pairs] for i in (0, 1))
        # The first update of a run: no lock lingers, and the row is archived.
        firsts = [timed(manager, f"first-{i}") for i in range(rounds // 10)]
        starts = []
        for _ in range(10):
            done = subprocess.run([sys.executable, "-c", START, uri], capture_output=True, text=True, check=True)
            starts.append(float(done.stdout))
        assert floor.stdin is not None
        floor.stdin.close()
        floor.wait()
        manager.close()
    base = statistics.median(inserts)
    print(f"bare INSERT      {milliseconds(inserts)}")
    print(f"update           {milliseconds(updates)}   {statistics.median(updates) / base:.2f} x (at most 1.5)")
    print(f"first update     {milliseconds(firsts)}   {statistics.median(firsts) / base:.2f} x (at most 8)")
    print(f"start, first get {milliseconds(starts)}   (at most 50 ms)")


main()
