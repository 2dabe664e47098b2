"""The program and the conversation with it: found, started, shared, ended, and what may go wrong."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time
import typing as t

import pytest
from meltano.core.state_store.base import MeltanoState

from meltano_state_backend_clickhouse import binary, errors, helper, program, shared

if t.TYPE_CHECKING:
    from collections.abc import Callable

    from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager

    Make = Callable[..., ClickhouseStateStoreManager]

A = {"singer_state": {"bookmarks": {"s": {"id": 1}}}}
OTHER = "clickhouse://u:p@h/d"


@pytest.fixture
def fake(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], pathlib.Path]:
    """Give a maker of programs that stand in for chstate."""

    def maker(code: str) -> pathlib.Path:
        path = tmp_path / "chstate"
        path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{textwrap.dedent(code)}")
        path.chmod(0o755)
        monkeypatch.setenv(program.ENV, str(path))
        return path

    return maker


GREETING = f"""
def say(**message):
    print(json.dumps(message), flush=True)
say(protocol={helper.PROTOCOL}, version="fake", pid=os.getpid())
"""


def test_secrets_are_in_no_argument(manager: ClickhouseStateStoreManager) -> None:
    manager._ensure_tables()
    pid = manager._use.helper().pid
    arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert arguments[1:] == [b"helper", b""]
    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    assert manager.conn_params["password"].encode() not in environment or "CH_TEST_URI" in os.environ


def test_nothing_starts_before_it_is_needed(make: Make) -> None:
    manager = make()
    assert manager._use.key not in shared._shared.helpers
    manager.close()


def test_managers_share_a_program_and_the_last_ends_it(make: Make) -> None:
    first, second, different = make(), make(), make(lock_wait_seconds="7")
    assert first.get("a") is None
    assert second.get("a") is None
    assert different.get("a") is None
    one = first._use.helper()
    assert second._use.helper() is one
    assert different._use.helper() is not one
    first.close()
    first.close()  # counts once
    assert second.get("a") is None
    assert second._use.helper() is one
    second.close()
    assert not pathlib.Path(f"/proc/{one.pid}").exists()
    assert not different._use.helper().ended


def test_threads_start_one_program(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = make()
    started = []

    def starting(*args: t.Any) -> helper.Helper:
        started.append(helper.Helper(*args))
        return started[-1]

    monkeypatch.setattr(shared, "Helper", starting)
    threads = [threading.Thread(target=manager.get, args=("a",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 1
    assert shared._shared.users[manager._use.key] == 1


def test_another_protocol_names_both_files(fake: Callable[[str], pathlib.Path], make: Make) -> None:
    path = fake('print(json.dumps({"protocol": 99, "version": "9"}), flush=True); sys.stdin.read()')
    with pytest.raises(errors.HelperError) as caught:
        make(OTHER).get("a")
    reason = caught.value.args[0]
    assert str(path) in reason
    assert helper.__file__ in reason
    assert "protocol 99" in reason


def test_a_program_that_is_not_ours(fake: Callable[[str], pathlib.Path], make: Make) -> None:
    path = fake('print("usage: something else")')
    with pytest.raises(errors.HelperError, match="is not a chstate program") as caught:
        make(OTHER).get("a")
    assert str(path) in caught.value.args[0]


def test_a_program_that_dies_leaves_its_last_words(fake: Callable[[str], pathlib.Path], make: Make) -> None:
    fake(GREETING + 'sys.stdin.readline(); print("panic: out of luck", file=sys.stderr); sys.exit(2)')
    with pytest.raises(errors.HelperError, match=r"ended with status 2 .*said: panic: out of luck"):
        make(OTHER).get("a")


def test_after_a_death_the_next_call_starts_anew(manager: ClickhouseStateStoreManager) -> None:
    manager.set(MeltanoState("a", None, A))
    first = manager._use.helper()
    os.kill(first.pid, 9)
    first.joined(5)
    assert manager.get("a") == MeltanoState("a", {}, A)
    assert manager._use.helper() is not first


def test_a_call_to_a_program_that_has_ended(manager: ClickhouseStateStoreManager) -> None:
    """Another thread closed it between the look and the call."""
    manager._ensure_tables()
    ended = manager._use.helper()
    ended.close(5)
    with pytest.raises(errors.HelperError):
        ended.call("ping")
    with pytest.raises(errors.HelperError):
        list(ended.stream("ids", pattern=""))


def test_a_program_that_does_not_end_is_ended(
    fake: Callable[[str], pathlib.Path], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(
        GREETING
        + """
for line in sys.stdin:
    say(id=json.loads(line)["id"], ok={"state": None})
time.sleep(60)
"""
    )
    monkeypatch.setattr(shared, "CLOSE_SECONDS", 0.2)
    manager = make(OTHER)
    assert manager.get("a") is None
    pid = manager._use.helper().pid
    began = time.monotonic()
    manager.close()
    assert time.monotonic() - began < 2
    assert not pathlib.Path(f"/proc/{pid}").exists()


def test_a_missing_program_is_named(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv(program.ENV, str(tmp_path / "none"))
    with pytest.raises(errors.HelperError, match=f"CHSTATE_HELPER names {tmp_path}/none"):
        make(OTHER).get("a")
    monkeypatch.delenv(program.ENV)
    monkeypatch.setattr(binary, "__file__", str(tmp_path / "package" / "binary.py"))
    with pytest.raises(errors.HelperError, match=r"missing from .*reinstall"):
        make(OTHER).get("a")


def test_an_editable_install_has_the_program_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.delenv(program.ENV, raising=False)
    monkeypatch.setattr(binary, "__file__", str(tmp_path / "src" / "package" / "binary.py"))
    place = tmp_path / "site-packages" / "package" / "bin" / "chstate"
    place.parent.mkdir(parents=True)
    place.touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site-packages")])
    assert program.find() == str(place)


def test_a_program_that_may_not_be_run(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "chstate"
    path.write_text("")
    monkeypatch.setenv(program.ENV, str(path))
    with pytest.raises(errors.HelperError, match=r"cannot start .*Permission denied.*CHSTATE_HELPER"):
        make(OTHER).get("a")


def test_its_log_becomes_ours(
    fake: Callable[[str], pathlib.Path], make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    fake(
        GREETING
        + """
level = json.loads(sys.stdin.readline())["log_level"]
for entry in {"level": "WARN", "msg": "waiting", "seconds": 3}, {"level": "INFO", "msg": level}:
    print(json.dumps({"time": "now", **entry}), file=sys.stderr, flush=True)
say(id=1, ok={})
say(id=2, ok={"state": None})
sys.stdin.read()
"""
    )
    caplog.set_level(logging.INFO, "meltano_state_backend_clickhouse")
    manager = make(OTHER)
    manager.get("a")
    manager.close()
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", "waiting seconds=3"),
        ("INFO", "INFO"),
    ]


def test_every_code_has_its_exception() -> None:
    codes = {
        "locked": errors.StateLockedError,
        "lock_lost": errors.LockLostError,
        "connect": errors.ConnectError,
        "invalid": errors.InvalidStateError,
        "corrupt": errors.InvalidStateError,
        "missing_settings": errors.MissingSettingsError,
        "settings": errors.InvalidSettingsError,
        "server": errors.ServerError,
        "cancelled": errors.ClickhouseStateBackendError,
        "protocol": errors.HelperError,
        "other": errors.ClickhouseStateBackendError,
    }
    source = pathlib.Path(__file__).parents[2] / "internal" / "service" / "errors.go"
    assert set(codes) == {
        line.split('"')[1] for line in source.read_text().splitlines() if line.startswith("\tcode") and "=" in line
    }
    for code, kind in codes.items():
        error = helper.exception({"code": code, "message": "it broke — mend it."})
        assert type(error) is kind
        assert error.args[0] == "it broke — mend it"
        assert str(error) == "it broke — mend it."


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["/usr/bin/meltano", "run", "tap-a", "target-b", "--force"], "meltano run tap-a target-b"),
        (["meltano", "--log-level=debug", "el", "tap-a", "target-b"], "meltano el tap-a target-b"),
        (["meltano", "state", "set", "id", '{"secret": 1}'], "meltano state set"),
        (["meltano", "config", "set", "tap-a", "password", "hunter2"], "meltano config set"),
        (["meltano", "run", "tap-a", "clickhouse://u:hunter2@h/d", "--x=hunter2"], "meltano run tap-a"),
        (["/venv/meltano/__main__.py", "run", "tap-a"], "meltano run tap-a"),
        (["-c", "clickhouse://u:hunter2@h/d"], "-c"),
        (["/opt/etl.py", "hunter2"], "etl.py"),
        ([], "python"),
    ],
)
def test_the_command_tells_no_secret(argv: list[str], shown: str) -> None:
    assert helper.command(argv) == f"{shown} [pid {os.getpid()}]"


def test_it_ends_with_an_interpreter_that_never_closed_it(uri: str) -> None:
    code = (
        "import sys\n"
        "from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager\n"
        "m = ClickhouseStateStoreManager(sys.argv[1]); m.get('a'); print(m._use.helper().pid)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, uri], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not pathlib.Path(f"/proc/{done.stdout.strip()}").exists()


def test_requests_are_json_lines(fake: Callable[[str], pathlib.Path], make: Make, tmp_path: pathlib.Path) -> None:
    fake(
        GREETING
        + f"""
with open({str(tmp_path / "said")!r}, "w") as said:
    for line in sys.stdin:
        said.write(line)
        said.flush()
        message = json.loads(line)
        say(id=message["id"], ok={{"state": {{"id": "é", "partial": None, "completed": '{{"n": 1.0}}'}}}})
"""
    )
    manager = make("clickhouse://u:p@h/d", port=9000, secure=None, lock_timeout_seconds="10", unknown="x")
    got = manager.get("é")
    assert got is not None
    assert json.dumps(got.completed_state) == '{"n": 1.0}'
    manager.set(MeltanoState("é", {}, {"n": 1.0}))
    init, *calls = map(json.loads, (tmp_path / "said").read_text().splitlines())
    assert init["settings"] == {"port": 9000, "lock_timeout_seconds": "10"}
    assert calls == [
        {"id": 2, "op": "get", "state_id": "é"},
        {"id": 3, "op": "set", "state_id": "é", "partial": None, "completed": '{"n": 1.0}'},
    ]
