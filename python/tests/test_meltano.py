"""Meltano's own commands, with the newest and with the oldest Meltano."""

from __future__ import annotations

import json
import signal
import time
import typing as t

import pytest
from meltano.core.state_store.base import MeltanoState

if t.TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from clickhouse_connect.driver.client import Client

    from conftest import Project
    from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager

    Make = Callable[..., ClickhouseStateStoreManager]

A = {"singer_state": {"bookmarks": {"s": {"id": 1}}}}
B = {"singer_state": {"bookmarks": {"s": {"id": 2}, "t": {"id": 3}}}}
RUN_ID = "dev:tap-rows-to-target-rows"


def test_state_commands(project: Project, manager: ClickhouseStateStoreManager) -> None:
    assert project.run("state", "list").stdout == ""
    project.run("state", "set", "--force", "a", json.dumps(A))
    assert json.loads(project.run("state", "get", "a").stdout) == A
    assert json.loads(project.run("state", "get", "none").stdout) == {}
    project.run("state", "copy", "--force", "a", "b")
    project.run("state", "merge", "b", json.dumps(B))
    assert json.loads(project.run("state", "get", "b").stdout) == B
    assert manager.get("b") == MeltanoState("b", B, A)
    project.run("state", "move", "--force", "b", "c-%_")
    assert manager.get_state_ids() == ["a", "c-%_"]
    assert project.run("state", "list").stdout.split() == ["a", "c-%_"]
    assert project.run("state", "list", "--pattern", "c-%*").stdout.split() == ["c-%_"]
    project.run("state", "clear", "--force", "a")
    assert manager.get_state_ids() == ["c-%_"]
    project.run("state", "clear", "--force", "--all")
    assert manager.get_state_ids() == []


def test_c01_c03_a_state_from_a_file(newest: Project, manager: ClickhouseStateStoreManager) -> None:
    (newest.root / "log_lines_then_json.txt").write_text(f"2024-01-01 [info] Reading\n{json.dumps(A)}\n")
    newest.run("state", "set", "--force", "a", "--input-file", "log_lines_then_json.txt", status=1)
    assert manager.get("a") is None
    newest.run("state", "set", "--force", "--no-validate", "a", '{"bookmarks": {}}')
    assert manager.get("a") == MeltanoState("a", {}, {"bookmarks": {}})


def test_edit(newest: Project, manager: ClickhouseStateStoreManager) -> None:
    manager.set(MeltanoState("a", None, A))
    newest.run("state", "edit", "--force", "a", VISUAL="sed -i s/1/9/")
    assert manager.get("a") == MeltanoState("a", {}, {"singer_state": {"bookmarks": {"s": {"id": 9}}}})


def test_c07_export_and_import(newest: Project, manager: ClickhouseStateStoreManager) -> None:
    """C07: halves that are missing or null are empty ones, and nothing is written of a file with a bad entry."""
    states = {
        "dev:tap-a-to-target-b": {"completed": A, "partial": {}},
        "dev:only-partial": {"completed": None, "partial": B},
        "dev:both-null": {"completed": None, "partial": None},
        "dev:missing-keys": {},
        "50% off/été _x_": {"completed": A, "partial": None},
    }
    newest.run("state", "import", stdin=json.dumps(states))
    exported = json.loads(newest.run("state", "export").stdout)
    assert exported == {
        state_id: {half: entry.get(half) or {} for half in ("completed", "partial")}  # type: ignore[attr-defined]
        for state_id, entry in states.items()
    }
    bad = {"dev:good": {"completed": A}, "dev:bad": "not an object"}
    done = newest.run("state", "import", status=1, stdin=json.dumps(bad))
    assert "entry 2 of the states cannot be read" in done.stderr
    assert "nothing was written" in done.stderr
    assert "dev:good" not in manager.get_state_ids()


def test_run_takes_only_what_is_new(project: Project, manager: ClickhouseStateStoreManager) -> None:
    project.run("run", "tap-rows", "target-rows")
    bookmark = {"singer_state": {"bookmarks": {"rows": {"id": 3}}}}
    assert manager.get(RUN_ID) == MeltanoState(RUN_ID, {}, bookmark)
    (project.root / "rows.txt").write_text("1\n2\n3\n4\n5\n")
    done = project.run("run", "tap-rows", "target-rows", TAP_ROWS_STATES="20")
    assert (project.root / "out.txt").read_text().split() == ["1", "2", "3", "4", "5"]
    bookmark["singer_state"]["bookmarks"]["rows"]["id"] = 5
    assert manager.get(RUN_ID) == MeltanoState(RUN_ID, {}, bookmark)
    for trouble in ("[error", "Traceback", "clickhouse"):
        assert trouble not in done.stderr
    # The end of the run gave back the lock that lingered.
    began = time.monotonic()
    manager.update(MeltanoState(RUN_ID, None, A))
    assert time.monotonic() - began < 1


def test_el_keeps_state_under_its_id(project: Project, manager: ClickhouseStateStoreManager) -> None:
    project.run("el", "tap-rows", "target-rows", "--state-id", "my id")
    assert project.run("el", "tap-rows", "target-rows", "--state-id", "my id").returncode == 0
    assert (project.root / "out.txt").read_text().split() == ["1", "2", "3"]
    assert manager.get_state_ids() == ["my id"]


def test_upgrade(project: Project, manager: ClickhouseStateStoreManager) -> None:
    """The newest Meltano has the add-on replace a lock table of the older plugin; 3.7 leaves that to the first call."""
    client, lock_table = manager.client, manager.lock_table
    client.command(f"CREATE DATABASE {manager.schema}")
    client.command(
        f"CREATE TABLE {lock_table} (state_id String, lock_id String, locked_at DateTime DEFAULT now()) "
        "ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id",
    )
    project.run("upgrade", "--skip-package")
    if project.version == "3.7":
        project.run("state", "set", "--force", "a", json.dumps(A))
    assert "expires_at" in [row[0] for row in client.query(f"DESCRIBE TABLE {lock_table}").result_rows]


def test_meltano_gives_every_setting(newest: Project, manager: ClickhouseStateStoreManager) -> None:
    newest.env["MELTANO_STATE_BACKEND_URI"] = manager.uri.replace(f"schema={manager.schema}", "schema=elsewhere")
    env = {"SCHEMA": manager.schema, "TABLE": "bookmarks", "HISTORY_DAYS": "0", "LOCK_LINGER_SECONDS": "0.5"}
    newest.env |= {f"MELTANO_STATE_BACKEND_CLICKHOUSE_{name}": value for name, value in env.items()}
    newest.run("state", "set", "--force", "a", json.dumps(A))
    tables = manager.client.query(f"SHOW TABLES FROM {manager.schema}").result_rows
    assert tables == [("bookmarks",), ("bookmarks_lock",)]


@pytest.mark.timeout(60)
def test_c09_a_bookmark_that_is_not_saved_fails_the_run(project: Project, manager: ClickhouseStateStoreManager) -> None:
    """C09: Meltano 3.7 goes on, and would end with status 0."""
    with manager.acquire_lock(RUN_ID):
        done = project.run(
            "run",
            "tap-rows",
            "target-rows",
            status=1,
            MELTANO_STATE_BACKEND_CLICKHOUSE_LOCK_WAIT_SECONDS="0.3",
        )
    assert done.stderr.count(f'State "{RUN_ID}" is not saved, so this run has failed') == 1
    assert f'state "{RUN_ID}" is locked by' in done.stderr
    assert manager.get(RUN_ID) is None


def interrupted_at(process: subprocess.Popen[str], moment: str) -> str:
    """Send Ctrl-C at the moment that a log line tells of; give what is said after that, in time."""
    said = heard(process, moment)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    said += heard(process, "ended the wait", or_its_end=True)
    assert time.monotonic() - began < 5, said
    _, rest = process.communicate(timeout=60)
    assert process.returncode != 0
    return said + rest


def heard(process: subprocess.Popen[str], text: str, *, or_its_end: bool = False) -> str:
    assert process.stderr is not None
    said = ""
    while text not in said:
        line = process.stderr.readline()
        if not line and or_its_end:
            break
        assert line, said
        said += line
    return said


def test_c08_ctrl_c_while_a_run_waits_for_a_lock(project: Project, manager: ClickhouseStateStoreManager) -> None:
    """C08: within 2 s, though Meltano's event loop is what waits."""
    with manager.acquire_lock(RUN_ID):
        interrupted_at(project.start("run", "tap-rows", "target-rows"), "waiting for the lock")
    assert manager.get(RUN_ID) is None
    with manager.acquire_lock(RUN_ID):
        pass


def test_ctrl_c_while_the_first_read_cannot_connect(project: Project) -> None:
    uri = "clickhouse://u:p@127.0.0.1:9/d"
    process = project.start("run", "tap-rows", "target-rows", MELTANO_STATE_BACKEND_URI=uri)
    interrupted_at(process, "waiting for ClickHouse")


def test_l01_a_killed_run_frees_its_id(newest: Project, manager: ClickhouseStateStoreManager) -> None:
    """L01: SIGKILL, as from an out-of-memory killer."""
    manager.set(MeltanoState(RUN_ID, None, A))
    process = newest.start("run", "tap-rows", "target-rows", TAP_ROWS_STATES="3000")
    while manager.get(RUN_ID) == MeltanoState(RUN_ID, {}, A):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    began = time.monotonic()
    with manager.acquire_lock(RUN_ID):
        assert time.monotonic() - began < 1
    process.communicate()


def test_s10_a_list_marks_what_is_no_state(project: Project, client: Client, schema: str) -> None:
    """S10: one row that is no state, and all the others are listed."""
    project.run("state", "set", "--force", "good", json.dumps({"singer_state": {"bookmarks": {"s": {"id": 1}}}}))
    client.insert(f"{schema}.state", [["bad", '"text"']], column_names=["state_id", "completed_state"])
    done = project.run("state", "list")
    assert done.stdout.split() == ["bad", "good"]
    assert "not an object" in done.stderr
