"""The benchmark: our figures, the floor beside them, and the ratio, in one run on one engine.

    make bench                       under six minutes on two idle cores
    make bench BENCH=full            also the sizes that take long
    make bench PEER=requirement      also the older plugin, in an environment of its own

It prints a table, writes bench/results.json, and draws docs/plots.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
import typing as t

import plots
from backends import Backend, BackendError, killed, runs, sizes, starts, updates
from figures import Line, table
from local_engine import ROOT, Engine, engine
from processes import many, small

RESULTS = ROOT / "bench" / "results.json"
PAGE = ROOT / "docs" / "performance.md"


def library(server: Engine, program: pathlib.Path, *, full: bool) -> t.Iterator[Line]:
    """Give the lines that bench/lines measures."""
    command: list[str | pathlib.Path] = [
        program,
        "-addr",
        server.address,
        "-user",
        server.user,
        *(["-full"] if full else []),
    ]
    env = {**os.environ, "CLICKHOUSE_PASSWORD": server.password}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True)
    for line in json.loads(done.stdout):
        yield Line.read(line)


def peer_backend(requirement: str, folder: pathlib.Path, uri: str) -> Backend | None:
    """Install a peer beside us; None, with a line that says why, where it cannot be had."""
    if not requirement:
        print("PEER is not set: the older plugin is not in the table", file=sys.stderr)
        return None
    venv = folder / "environment of the peer"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    install: list[str | pathlib.Path] = [
        venv / "bin" / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-c",
        ROOT / "requirements" / "constraints.txt",
    ]
    done = subprocess.run([*install, "meltano", requirement], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        print(f"PEER={requirement} cannot be installed, so it is not in the table: {reason}", file=sys.stderr)
        return None
    backend = Backend("peer", venv / "bin" / "python", folder, uri)
    with backend.worker() as worker:
        try:
            worker("get", id="a")
        except BackendError as error:
            print(f"PEER={requirement} does not work here, so it is not in the table: {error}", file=sys.stderr)
            return None
    return backend


def about(server: Engine, python: pathlib.Path, load: float) -> dict[str, t.Any]:
    """Say on what, and of what, the figures are."""

    def said(*command: str | pathlib.Path) -> str:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    model = platform.processor()
    if (info := pathlib.Path("/proc/cpuinfo")).exists():
        model = next(
            (line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")),
            model,
        )
    return {
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": said("git", "describe", "--always", "--dirty", "--exclude=*"),
        "machine": {
            "system": platform.system(),
            "processor": model,
            "cores": os.cpu_count(),
            "load_before": load,
            "load_after": os.getloadavg()[0],
        },
        "versions": {
            "chstate": said(ROOT / "bin" / "chstate", "version").split()[1],
            "clickhouse": server.sql("SELECT version()"),
            "go": said("go", "env", "GOVERSION"),
            "python": platform.python_version(),
            "meltano": said(python, "-c", "import importlib.metadata as m; print(m.version('meltano'))"),
        },
    }


def publish(lines: list[Line], facts: dict[str, t.Any]) -> None:
    """Write the table into the page that explains it, and draw its plots."""
    machine, versions = facts["machine"], facts["versions"]
    told = (
        f"Measured {facts['at']} at commit {facts['commit']} on {machine['system']}, {machine['cores']} cores"
        f" ({machine['processor']}), load average {machine['load_before']:.1f} before and {machine['load_after']:.1f}"
        f" after; ClickHouse {versions['clickhouse']}, Meltano {versions['meltano']}, Python {versions['python']},"
        f" {versions['go']}."
    )
    page = PAGE.read_text()
    before, rest = page.split("<!-- table -->")
    after = rest.split("<!-- /table -->")[1]
    PAGE.write_text(f"{before}<!-- table -->\n{told}\n\n{table(lines)}\n<!-- /table -->{after}")
    plots.draw(lines, PAGE.parent / "plots")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--python", type=pathlib.Path, required=True, help="interpreter of the environment with Meltano and the add-on"
    )
    options.add_argument("--peer", default="", help="requirement or path of the older plugin")
    options.add_argument("--full", action="store_true")
    options.add_argument("--only", default="", help="names of parts, with commas between; nothing is written then")
    given = options.parse_args()
    python = given.python.absolute()
    load = os.getloadavg()[0]
    lines: list[Line] = []
    with engine() as server, tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        floor, program = folder / "floor", folder / "lines"
        for binary in (floor, program):
            subprocess.run(
                ["go", "build", "-o", binary, f"./bench/{binary.name}"],
                cwd=ROOT,
                env={**os.environ, "CGO_ENABLED": "0"},
                check=True,
            )
        ours = Backend("ours", python, folder, server.uri)
        systemdb = Backend("systemdb", python, folder, "systemdb")
        files = Backend("files", python, folder, "file://{root}/.meltano/state")
        peer = peer_backend(given.peer, folder, server.uri)
        peers = [peer] if peer else []
        systemdb.meltano("state", "list")  # makes the project's database
        parts: dict[str, t.Callable[[], t.Iterator[Line]]] = {
            "library": lambda: library(server, program, full=given.full),
            "updates": lambda: updates(server, floor, ours, [systemdb, files, *peers]),
            "starts": lambda: starts(server, [ours, *peers]),
            "small": lambda: small(server, ours, systemdb),
            "sizes": lambda: sizes(ours, [systemdb, files, *peers]),
            "killed": lambda: killed(ours),
            "many": lambda: many(server, folder),
            "runs": lambda: runs(ours, systemdb, [files, *peers], full=given.full),
        }
        for part, measure in parts.items():
            if given.only and part not in given.only.split(","):
                continue
            began = time.monotonic()
            lines += measure()
            print(f"{part}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        facts = about(server, python, load)
        for schema in ("bench_ours", "bench_peer"):
            server.sql(f"DROP DATABASE IF EXISTS {schema}")
    lines.sort(key=lambda line: line.part)  # stable: within a part, as measured
    print(table(lines))
    print(json.dumps(facts))
    if not given.only:
        results = {**facts, "lines": [line.json() for line in lines]}
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        publish(lines, facts)


main()
