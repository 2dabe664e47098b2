"""What counts as not saved; the status of Meltano's process is tested in test_meltano.py."""

from __future__ import annotations

import subprocess
import sys
import typing as t

import pytest
from meltano.core.state_store.base import MeltanoState

from meltano_state_backend_clickhouse import errors, unsaved

if t.TYPE_CHECKING:
    from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager

A = {"singer_state": {"bookmarks": {"s": {"id": 1}}}}


@pytest.fixture(autouse=True)
def _nothing_unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsaved, "_reasons", {})


def fail(manager: ClickhouseStateStoreManager, state_id: str) -> None:
    with pytest.raises(errors.InvalidStateError):
        manager.update(MeltanoState(state_id, None, {"when": object()}))


def ids() -> list[str]:
    return [state_id for _, state_id in unsaved._reasons]


def test_a_later_write_makes_good(manager: ClickhouseStateStoreManager, caplog: pytest.LogCaptureFixture) -> None:
    fail(manager, "a")
    fail(manager, "a")
    fail(manager, "b")
    assert ids() == ["a", "b"]
    assert [r.levelname for r in caplog.records] == ["WARNING", "WARNING"]  # once for each id
    manager.update(MeltanoState("a", None, A))
    assert ids() == ["b"]
    manager.set_all([MeltanoState("b", None, A)])
    assert ids() == []
    fail(manager, "c")
    manager.clear("c")
    assert ids() == []


def end(code: str) -> subprocess.CompletedProcess[str]:
    """End a process with something that was not saved."""
    code = f"""
import logging, sys, types
logging.basicConfig()
from meltano_state_backend_clickhouse import shared, unsaved
unsaved.failed("store", "a", "it broke")
print("out", end="")
{code}
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


CLI = 'sys.modules["meltano.cli"] = types.SimpleNamespace(exit_code={})'


def test_meltanos_own_process_fails() -> None:
    done = end(CLI.format(0))
    assert done.returncode == 1
    assert done.stdout == "out"  # flushed
    assert done.stderr.count("ERROR:") == 1
    assert 'State "a" is not saved, so this run has failed: it broke' in done.stderr


def test_a_failure_of_meltanos_own_stays() -> None:
    done = end(CLI.format(3) + "; sys.exit(3)")
    assert done.returncode == 3
    assert done.stderr.count("ERROR:") == 1


def test_other_programs_are_left_alone() -> None:
    for code in ("", CLI.format(None)):
        done = end(code)
        assert done.returncode == 0
        assert "ERROR:" not in done.stderr


def test_a_forked_process_answers_for_itself_alone() -> None:
    done = end(CLI.format(0) + "\nimport os\nif os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]) + 7)")
    assert done.returncode == 1  # the parent's own; its child ended with 0
    assert done.stderr.count("ERROR:") == 1
