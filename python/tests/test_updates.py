"""What a stream of updates asks of the program, and that it never merges onto something old."""

from __future__ import annotations

import time
import typing as t

import pytest
from meltano.core.state_store.base import MeltanoState

if t.TYPE_CHECKING:
    from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager


@pytest.fixture
def asked(manager: ClickhouseStateStoreManager, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the calls that are made from now on."""
    helper, ops = manager._use.helper(), []
    call = helper.call

    def noting(op: str, **fields: t.Any) -> dict[str, t.Any]:
        ops.append(op)
        return call(op, **fields)

    monkeypatch.setattr(helper, "call", noting)
    return ops


def partial(**bookmarks: t.Any) -> MeltanoState:
    return MeltanoState(state_id="a", partial_state={"singer_state": {"bookmarks": bookmarks}})


def test_a_stream_of_partial_updates_reads_once(manager: ClickhouseStateStoreManager, asked: list[str]) -> None:
    for n in range(4):
        manager.update(partial(**{f"s{n}": n}))
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
