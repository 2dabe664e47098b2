"""What the backend costs a run: `meltano run` with 200 STATE messages, beside Meltano's own database.

Needs bin/chstate-engine and an environment with Meltano in which the add-on is installed:

    python bench/meltano_run.py [ROUNDS]
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from local_engine import ROOT, engine

PLUGINS = ROOT / "python" / "tests" / "plugins"
MELTANO = pathlib.Path(sys.executable).parent / "meltano"

PROJECT = f"""\
default_environment: dev
project_id: 6d1f5f8e-0000-4000-8000-000000000000
environments: [{{name: dev}}]
plugins:
  extractors:
  - name: tap-rows
    namespace: tap_rows
    executable: {PLUGINS / "tap.py"}
    capabilities: [state]
    settings: [{{name: path, value: rows.txt}}, {{name: states, kind: integer, value: 200}}]
  loaders:
  - name: target-rows
    namespace: target_rows
    executable: {PLUGINS / "target.py"}
    settings: [{{name: path, value: out.txt}}]
"""


def run(root: str, uri: str) -> float:
    env = {
        **os.environ,
        "MELTANO_STATE_BACKEND_URI": uri,
        "MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false",
        "MELTANO_CLI_DISABLE_VERSION_CHECK": "true",
    }
    began = time.perf_counter()
    subprocess.run([MELTANO, "run", "tap-rows", "target-rows"], cwd=root, env=env, capture_output=True, check=True)
    return time.perf_counter() - began


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with engine() as (address, password), tempfile.TemporaryDirectory() as root:
        pathlib.Path(root, "meltano.yml").write_text(PROJECT)
        pathlib.Path(root, "rows.txt").write_text("1\n")
        ours = f"clickhouse://etl:{password}@{address}/default"
        run(root, "systemdb")  # makes the project's database
        run(root, ours)
        pairs = [(run(root, "systemdb"), run(root, ours)) for _ in range(rounds)]
    own, clickhouse = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
    print(f"systemdb {own:.2f} s, clickhouse {clickhouse:.2f} s: {clickhouse - own:+.2f} s (at most +1.5 s)")


main()
