"""Threads, listings and signals that cross: what was once lost, or never given back, by each of them."""

from __future__ import annotations

import os
import signal
import threading
import time
import typing as t

import pytest
from meltano.core.state_store.base import MeltanoState

from meltano_state_backend_clickhouse import errors, signals
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager

if t.TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Iterator

    Make = Callable[..., ClickhouseStateStoreManager]


@pytest.fixture(autouse=True)
def _no_signal_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no signal of the test before count, which may be less than a second ago."""
    monkeypatch.setattr(signals, "_last", None)


def completed(state_id: str, **values: t.Any) -> MeltanoState:
    return MeltanoState(state_id, {}, values)


def test_a_read_under_the_lock_is_not_older_than_the_lock(manager: ClickhouseStateStoreManager, make: Make) -> None:
    """Although another thread has listed meanwhile, and read ahead."""
    other = make(lock_wait_seconds=20)  # another program
    manager.set_all([completed("a", v=1), completed("b", v=1)])
    updating = threading.Thread(target=manager.update, args=[MeltanoState("b", {"mine": 1})])
    with other.acquire_lock("b"):
        updating.start()
        time.sleep(0.3)  # until it waits for the lock
        assert manager.get(manager.get_state_ids()[0]) == completed("a", v=1)
        other.set(MeltanoState("b", {"theirs": 1}, {"v": 1}))
    updating.join()
    assert other.get("b") == MeltanoState("b", {"theirs": 1, "mine": 1}, {"v": 1})


def test_what_was_read_ahead_ends_with_a_write(make: Make) -> None:
    """By another manager of the same program, or by the one that set_all takes its states from."""
    manager, other = make(), make()
    manager.set_all([completed(i, v=1) for i in "abc"])
    assert manager.get(manager.get_state_ids()[0]) == completed("a", v=1)
    other.set(completed("b", v=2))
    assert manager.get("b") == completed("b", v=2)

    def states() -> Iterator[MeltanoState]:
        manager.get(manager.get_state_ids()[0])
        yield completed("b", v=3)

    manager.set_all(states())
    assert manager.get("b") == completed("b", v=3)


def test_a_lost_hold_does_not_take_the_next_one_along(manager: ClickhouseStateStoreManager, make: Make) -> None:
    taken, let_go, failed = threading.Event(), threading.Event(), []

    def lose() -> None:
        try:
            with manager.acquire_lock("a"):
                taken.set()
                let_go.wait()
        except errors.LockLostError as error:
            failed.append(error)

    thread = threading.Thread(target=lose)
    thread.start()
    taken.wait()
    manager.close()
    with manager.acquire_lock("a"):
        let_go.set()
        thread.join()
        assert failed
        manager.set(completed("a", v=1))
        with pytest.raises(errors.StateLockedError), make(lock_wait_seconds=0).acquire_lock("a"):
            pass
    with make(lock_wait_seconds=1).acquire_lock("a"):
        pass


@pytest.fixture
def slow_start(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, manager: ClickhouseStateStoreManager) -> None:
    """Have the program take a second to start."""
    manager.set(completed("made", tables=1))
    helper = manager._use.helper()
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec "{helper._child.program}" "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("CHSTATE_HELPER", str(slow))


@pytest.mark.usefixtures("slow_start")
@pytest.mark.parametrize(
    "handler", [signal.default_int_handler, lambda *_: None], ids=["Ctrl-C", "noted, as by asyncio"]
)
def test_an_interruption_while_the_program_starts(make: Make, handler: t.Any) -> None:
    """The lock that was asked for meanwhile is not kept, and a write is not said to be undone that may be done."""
    manager = make(lock_wait_seconds=1)
    before = signal.signal(signal.SIGINT, handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises((KeyboardInterrupt, errors.InterruptedWaitError)), manager.acquire_lock("a"):
            pass
        signals._last = None
        with manager.acquire_lock("a"):
            pass
        manager.close()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            manager.set(completed("b", v=1))
        except errors.InterruptedWaitError as error:
            assert "nothing was written" not in str(error)  # noqa: PT017  it may have been done in time
        except KeyboardInterrupt:
            pass
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_is_set_by_a_handler_stays(manager: ClickhouseStateStoreManager) -> None:
    """As by who wants the second Ctrl-C to kill."""

    def first(*_: object) -> None:
        signal.signal(signal.SIGINT, second)

    def second(*_: object) -> None:
        """Do nothing."""

    before = signal.signal(signal.SIGINT, first)
    waiting = ClickhouseStateStoreManager(manager.uri, lock_wait_seconds=20)
    try:
        with manager.acquire_lock("a"):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(errors.InterruptedWaitError), waiting.acquire_lock("a"):
                pass
        assert signal.getsignal(signal.SIGINT) is second
    finally:
        signal.signal(signal.SIGINT, before)
        waiting.close()
