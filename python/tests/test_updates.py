"""What a stream of updates asks of the program, and that it never merges onto something old."""

from __future__ import annotations

import json
import threading
import time
import typing as t

import pytest
from meltano.core.state_store.base import MeltanoState

from meltano_state_backend_clickhouse import errors

if t.TYPE_CHECKING:
    from collections.abc import Callable

    from clickhouse_connect.driver.client import Client

    from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager


@pytest.fixture
def asked(manager: ClickhouseStateStoreManager, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the calls that are made from now on."""
    helper, ops = manager._use.helper(), []
    call = helper.call

    def noting(op: str, request: int | None = None, **fields: t.Any) -> dict[str, t.Any]:
        ops.append(op)
        return call(op, request, **fields)

    monkeypatch.setattr(helper, "call", noting)
    return ops


def partial(**bookmarks: t.Any) -> MeltanoState:
    return MeltanoState(state_id="a", partial_state={"singer_state": {"bookmarks": bookmarks}})


def test_a_stream_of_partial_updates_reads_once(manager: ClickhouseStateStoreManager, asked: list[str]) -> None:
    for _ in range(20):  # until the machine is quick enough for it: what was read counts for half a second
        manager.clear("a")
        del asked[:]
        began = time.monotonic()
        for n in range(4):
            manager.update(partial(**{f"s{n}": n}))
        if time.monotonic() - began < 0.4:
            break
    assert asked == ["lock", "get", "set", *["lock", "set"] * 3]
    state = manager.get("a")
    assert state is not None
    assert state.partial_state == {"singer_state": {"bookmarks": {"s0": 0, "s1": 1, "s2": 2, "s3": 3}}}


def test_what_changed_without_the_lock_is_merged_onto(manager: ClickhouseStateStoreManager) -> None:
    manager.update(partial(mine=1))
    manager.set(MeltanoState(state_id="a", completed_state={"set": "here"}))
    manager.update(partial(more=2))
    state = manager.get("a")
    assert state is not None
    assert state.completed_state == {"set": "here"}
    assert state.partial_state == {"singer_state": {"bookmarks": {"more": 2}}}


def test_a_deleted_state_is_not_merged_onto(manager: ClickhouseStateStoreManager) -> None:
    manager.update(partial(gone=1))
    manager.clear("a")
    manager.update(partial(new=2))
    state = manager.get("a")
    assert state is not None
    assert state.partial_state == {"singer_state": {"bookmarks": {"new": 2}}}


def completed(value: t.Any) -> MeltanoState:
    return MeltanoState(state_id="a", partial_state={}, completed_state={"x": value})


def test_other_writes_of_this_process_are_seen_within_a_hold(
    manager: ClickhouseStateStoreManager,
    make: Callable[..., ClickhouseStateStoreManager],
) -> None:
    other = make()
    manager.set(completed(0))
    with manager.acquire_lock("a"):
        writes: list[Callable[[MeltanoState], object]] = [
            other.set,
            lambda state: manager.set_all([state]),
            lambda state: other.set_all([state]),
        ]
        for n, write in enumerate(writes):
            assert manager.get("a") is not None
            write(completed(n))
            assert manager.get("a") == completed(n)
        manager.clear_all()
        assert manager.get("a") is None


def test_a_row_that_is_no_state_is_never_written_over(
    manager: ClickhouseStateStoreManager,
    client: Client,
    schema: str,
) -> None:
    """Not even when it has the version of the one that was written."""
    manager.update(partial(good=1))
    client.command(
        f"ALTER TABLE {schema}.state UPDATE partial_state = '{{\"a\":' WHERE 1",
        settings={"mutations_sync": 1},
    )
    time.sleep(1.1)
    for n in range(3):
        with pytest.raises(errors.InvalidStateError):
            manager.update(partial(more=n))
    assert client.query(f"SELECT partial_state FROM {schema}.state FINAL").result_rows == [('{"a":',)]


def test_a_thread_that_has_no_lock_writes_without_one(manager: ClickhouseStateStoreManager) -> None:
    """Although another one takes and gives back the lock of the same id meanwhile."""
    failed, done = [], threading.Event()

    def bare() -> None:
        while not done.is_set():
            try:
                manager.set(completed(1))
                manager.get("a")
            except errors.ClickhouseStateBackendError as error:  # noqa: PERF203  one at a time
                failed.append(error)

    thread = threading.Thread(target=bare)
    thread.start()
    for n in range(60):
        manager.update(partial(n=n))
    done.set()
    thread.join()
    assert not failed


def test_within_one_hold(manager: ClickhouseStateStoreManager, asked: list[str]) -> None:
    with manager.acquire_lock("a"):
        manager.set(partial(one=1))
        assert asked == ["lock", "set"]
        state = manager.get("a")
        assert state is not None
        assert state.partial_state == {"singer_state": {"bookmarks": {"one": 1}}}
        state.partial_state.clear()  # the caller's own
        again = manager.get("a")
        assert again is not None
        assert again.partial_state == {"singer_state": {"bookmarks": {"one": 1}}}
        assert asked == ["lock", "set"]
        time.sleep(1.1)
        assert manager.get("a") is not None
        assert asked == ["lock", "set", "get"]
        manager.delete("a")
        assert manager.get("a") is None


def test_s09_a_state_without_bookmarks_is_told(
    manager: ClickhouseStateStoreManager,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S09: a run whose last STATE is empty replaces a good state; it says so."""
    manager.update(MeltanoState(state_id="a", completed_state={"singer_state": {"bookmarks": {"s": 1}}}))
    assert not caplog.records
    manager.update(MeltanoState(state_id="a", completed_state={"singer_state": {}}))
    assert "written without any bookmark" in caplog.text
    assert "chstate rollback" in caplog.text
    state = manager.get("a")
    assert state is not None
    assert state.completed_state == {"singer_state": {}}


def test_s10_a_bad_row_does_not_hide_the_others_from_a_list(
    manager: ClickhouseStateStoreManager,
    client: Client,
    schema: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S10: `meltano state list` walks through the ids so, and marks those whose state is not one."""
    good: dict[str, t.Any] = {"singer_state": {"bookmarks": {}}}
    manager.set(MeltanoState(state_id="good", completed_state=good))
    rows: list[list[t.Any]] = [
        ["bad", '"text"', None],
        ["clash", '{"singer_state": 5}', '{"singer_state": {"bookmarks": {"s": 1}}}'],
    ]
    client.insert(f"{schema}.state", rows, column_names=["state_id", "completed_state", "partial_state"])
    merged = {}
    for state_id in manager.get_state_ids():
        state = manager.get(state_id)
        assert state is not None
        merged[state_id] = json.loads(state.json_merged())
        if state_id == "bad":
            with pytest.raises(errors.InvalidStateError):
                assert state.completed_state
    assert merged["good"] == good
    assert "not an object" in merged["bad"]["unusable"]
    assert "cannot merge" in merged["clash"]["unusable"]
    assert caplog.text.count("WARNING") == 2
    with pytest.raises(errors.InvalidStateError):
        manager.get("bad")  # by itself it fails, as ever
