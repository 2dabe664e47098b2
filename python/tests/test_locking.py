"""Locks between threads and processes, and what signals, deaths and forks do to them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import typing as t
from pathlib import Path

import pytest
from meltano.core.error import MeltanoError
from meltano.core.state_store.base import MeltanoState, StateIDLockedError

from meltano_state_backend_clickhouse import errors, helper, signals
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager

if t.TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., ClickhouseStateStoreManager]

A = {"singer_state": {"bookmarks": {"s": {"id": 1}}}}


@pytest.fixture(autouse=True)
def _no_signal_of_the_test_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_last", None)


PRELUDE = """
import os, signal, sys, time
from meltano.core.state_store.base import MeltanoState
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager
manager = ClickhouseStateStoreManager(sys.argv[1])
"""


def script(code: str, *args: str) -> subprocess.Popen[str]:
    """Start a process of its own that uses the add-on."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


HOLD = """
with manager.acquire_lock("a"):
    print(manager._use.helper().pid, flush=True)
    time.sleep(60)
"""


def gone(pid: int, seconds: float) -> bool:
    """Say whether a process that is no child of ours ends in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_a_dead_process_frees_its_locks(manager: ClickhouseStateStoreManager, uri: str) -> None:
    """SIGKILL gives no time for anything; its helper sees the end and gives back the lock."""
    process = script(HOLD, uri)
    helper = int(line(process))
    began = time.monotonic()
    process.kill()
    process.communicate()
    with manager.acquire_lock("a"):
        assert time.monotonic() - began < 1
    assert gone(helper, 2)


def test_l01_a_killed_helper_frees_its_locks_after_the_lease(uri: str, make: Make) -> None:
    """Everything is killed: nobody can give anything back, so the lease has to end."""
    process = script(
        """
        manager = ClickhouseStateStoreManager(sys.argv[1], lock_timeout_seconds=1)
        with manager.acquire_lock("a"):
            os.kill(manager._use.helper().pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        uri,
    )
    process.communicate()
    began = time.monotonic()
    with make(lock_timeout_seconds=1).acquire_lock("a"):
        assert time.monotonic() - began < 5


def test_the_end_of_a_run_leaves_no_lock(manager: ClickhouseStateStoreManager, uri: str) -> None:
    """The lock lingers for a second; a process that ends within it does not keep the id for a lease."""
    process = script('manager.update(MeltanoState("a", None, {"v": 1}))', uri)
    assert process.communicate()[1] == ""
    began = time.monotonic()
    manager.update(MeltanoState("a", None, {"v": 2}))
    assert time.monotonic() - began < 1


def test_the_holder_is_named(uri: str, make: Make) -> None:
    process = script("sys.argv[:] = ['meltano', 'run', 'tap-x', 'target-y']\n" + HOLD.replace("sys.argv[1]", ""), uri)
    try:
        line(process)
        began = time.monotonic()
        with pytest.raises(StateIDLockedError) as caught, make(lock_wait_seconds="0.5").acquire_lock("a"):
            pass
        assert time.monotonic() - began < 3
        error = caught.value
        assert isinstance(error, errors.StateLockedError)
        assert isinstance(error, MeltanoError)
        assert error.holder["host"] == os.uname().nodename
        assert "meltano run tap-x target-y" in error.holder["command"]
        assert f"[pid {process.pid}]" in error.holder["command"]
        for word in ('state "a"', "meltano run tap-x target-y", "since", "lock_wait_seconds"):
            assert word in error.args[0]
    finally:
        process.kill()
        process.communicate()


def test_a_waiter_gets_the_lock_when_it_is_free(manager: ClickhouseStateStoreManager, uri: str) -> None:
    process = script(
        """
        with manager.acquire_lock("a"):
            print("held", flush=True)
            sys.stdin.readline()
        print(repr(time.time()), flush=True)
        """,
        uri,
    )
    assert line(process) == "held"
    threading.Timer(1, lambda: (process.stdin.write("\n"), process.stdin.flush())).start()  # type: ignore[union-attr]
    with manager.acquire_lock("a"):
        held = time.time()
        assert 0 <= held - float(line(process)) < 2
    process.communicate()


def test_n14_eight_threads_one_manager(manager: ClickhouseStateStoreManager) -> None:
    """N14: calls of several threads cross, and updates of one id exclude each other."""
    failures: list[Exception] = []

    def work(n: int) -> None:
        try:
            for i in range(5):
                with manager.acquire_lock("sum"):
                    now = manager.get("sum")
                    total = now.completed_state["n"] if now and now.completed_state else 0
                    manager.set(MeltanoState("sum", None, {"n": total + 1}))
                manager.update(MeltanoState(f"own{n}", {f"k{i}": n}))
                assert manager.get(f"own{n}")
        except Exception as error:  # noqa: BLE001  a thread has nobody to raise to
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert manager.get("sum") == MeltanoState("sum", {}, {"n": 40})
    assert manager.get("own7") == MeltanoState("own7", {f"k{i}": 7 for i in range(5)}, {})


def test_two_managers_of_one_process_exclude_each_other(make: Make) -> None:
    first, second = make(lock_wait_seconds="0.3"), make(lock_wait_seconds="0.3")
    with first.acquire_lock("a"), pytest.raises(StateIDLockedError), second.acquire_lock("a"):
        pass
    with second.acquire_lock("a"):
        pass


def test_calls_within_the_lock_belong_to_it(manager: ClickhouseStateStoreManager) -> None:
    with manager.acquire_lock("a"):
        manager.set(MeltanoState("a", None, A))
        assert manager.get("a") == MeltanoState("a", {}, A)
        manager.set(MeltanoState("b", None, A))  # another id: not under the lock
        manager.delete("a")
        assert manager.get("a") is None
    assert manager.get_state_ids() == ["b"]


def test_a_lost_lock_fails_the_next_call(
    manager: ClickhouseStateStoreManager, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    other = make(lock_linger_seconds=0)

    def hold() -> None:
        with manager.acquire_lock("a"):
            manager.set(MeltanoState("a", None, A))
            os.kill(manager._use.helper().pid, signal.SIGKILL)
            time.sleep(0.2)
            manager.set(MeltanoState("a", None, {"late": 1}))

    with pytest.raises(errors.LockLostError, match=r'state "a"'):
        hold()
    assert 'State "a" was not saved' in caplog.text
    assert other.get("a") == MeltanoState("a", {}, A)
    assert manager.get("a") == MeltanoState("a", {}, A)  # with a program started anew


def test_a_lock_lost_unnoticed_fails_at_its_end(manager: ClickhouseStateStoreManager) -> None:
    def hold() -> None:
        with manager.acquire_lock("a"):
            os.kill(manager._use.helper().pid, signal.SIGKILL)
            time.sleep(0.2)

    with pytest.raises(errors.LockLostError):
        hold()


def test_l05_l06_a_suspended_holder_writes_nothing(make: Make) -> None:
    """L05, L06: a holder that slept past its lease is refused, and does not remove its successor's lock."""
    sleeper, other = make(lock_timeout_seconds=1), make(lock_timeout_seconds=2)

    def hold() -> None:
        with sleeper.acquire_lock("a"):
            pid = sleeper._use.helper().pid
            os.kill(pid, signal.SIGSTOP)
            try:
                other.update(MeltanoState("a", None, {"by": "other"}))
            finally:
                os.kill(pid, signal.SIGCONT)
            sleeper.set(MeltanoState("a", None, {"by": "sleeper"}))

    with pytest.raises(errors.LockLostError):
        hold()
    assert other.get("a") == MeltanoState("a", {}, {"by": "other"})


# --- Signals --------------------------------------------------------------------

WAIT = """
print("waiting", flush=True)
began = time.monotonic()
try:
    {wait}
except BaseException as error:
    print(type(error).__name__, round(time.monotonic() - began, 1), error, flush=True)
"""

LOOP = """
import asyncio
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: print("loop", flush=True))
    {wait}
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("wait", "signum", "expected"),
    [
        ('with manager.acquire_lock("a"): pass', signal.SIGINT, "KeyboardInterrupt"),
        (
            "exec(" + repr(LOOP.format(wait='\n    with manager.acquire_lock("a"): pass')) + ")",
            signal.SIGTERM,
            "InterruptedWaitError",
        ),
    ],
    ids=["Ctrl-C", "SIGTERM in an event loop"],
)
def test_c08_a_signal_ends_a_wait(
    manager: ClickhouseStateStoreManager, uri: str, wait: str, signum: int, expected: str
) -> None:
    """C08: within 2 s, and whoever waits after it gets the lock."""
    with manager.acquire_lock("a"):
        process = script(WAIT.format(wait=wait), uri)
        assert line(process) == "waiting"
        time.sleep(1)
        began = time.monotonic()
        process.send_signal(signum)
        while not (said := line(process)).startswith(expected):
            assert said, process.communicate()
        assert time.monotonic() - began < 2
    process.communicate()
    with manager.acquire_lock("a"):
        pass


def test_ctrl_c_in_an_event_loop(manager: ClickhouseStateStoreManager) -> None:
    """Since 3.11 asyncio notes the first Ctrl-C and cancels the task, which cannot hear it."""
    holder = ClickhouseStateStoreManager(manager.uri, lock_wait_seconds=20)
    with manager.acquire_lock("a"):

        async def wait() -> None:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            with holder.acquire_lock("a"):
                pass

        began = time.monotonic()
        with pytest.raises((KeyboardInterrupt, errors.InterruptedWaitError)):
            asyncio.run(wait())
        assert time.monotonic() - began < 2
    holder.close()


def test_a_signal_at_the_end_of_a_slice(manager: ClickhouseStateStoreManager) -> None:
    """It is acted on, too: the handler, which takes longer than the slice, must not make the wait one without end."""

    def handler(*_: object) -> None:
        time.sleep(1.5 * helper.SLICE)

    before = signal.signal(signal.SIGINT, handler)
    waiting = ClickhouseStateStoreManager(manager.uri, lock_wait_seconds=20)
    try:
        with manager.acquire_lock("a"):
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            began = time.monotonic()
            with pytest.raises(errors.InterruptedWaitError), waiting.acquire_lock("a"):
                pass
            assert time.monotonic() - began < 3
    finally:
        signal.signal(signal.SIGINT, before)
        waiting.close()


def test_a_cancellation_before_the_call_ends_it(manager: ClickhouseStateStoreManager) -> None:
    """Ctrl-C came while the loop was busy elsewhere: what is called next does not wait."""
    with manager.acquire_lock("a"):

        async def wait() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            with ClickhouseStateStoreManager(manager.uri).acquire_lock("a"):
                pass

        began = time.monotonic()
        with pytest.raises(errors.InterruptedWaitError, match="cancellation ended the wait"):
            asyncio.run(wait())
        assert time.monotonic() - began < 2


def test_a_signal_ends_a_call_that_gets_no_answer(make: Make) -> None:
    """The server cannot be reached, and the helper goes on trying."""
    lonely = make("clickhouse://u:p@127.0.0.1:9/d")

    def handler(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        began = time.monotonic()
        with pytest.raises(errors.InterruptedWaitError, match="SIGTERM ended the wait"):
            lonely.get("a")
        assert time.monotonic() - began < 2
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_handlers_are_left_as_they_were(manager: ClickhouseStateStoreManager) -> None:
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    manager.update(MeltanoState("a", None, A))
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before


# --- Forks -----------------------------------------------------------------------


def test_a_forked_process_has_a_helper_of_its_own(uri: str) -> None:
    process = script(
        """
        manager.set(MeltanoState("a", None, {"v": 1}))
        mine = manager._use.helper().pid
        child = os.fork()
        if child == 0:
            assert manager.get("a").completed_state == {"v": 1}
            with manager.acquire_lock("b"):
                manager.set(MeltanoState("b", None, {"v": 2}))
            assert manager._use.helper().pid != mine
            manager.close()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert manager._use.helper().pid == mine
        assert manager.get("b").completed_state == {"v": 2}
        manager.close()
        print("done")
        """,
        uri,
    )
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("done\n", 0), err


def test_a_forked_process_does_not_keep_the_helper(manager: ClickhouseStateStoreManager, uri: str) -> None:
    """The parent is killed while a child of a fork lives on: the parent's locks are free all the same."""
    process = script(
        """
        with manager.acquire_lock("a"):
            child = os.fork()
            if child == 0:
                time.sleep(60)
            print(child, flush=True)
            time.sleep(60)
        """,
        uri,
    )
    child = int(line(process))
    try:
        began = time.monotonic()
        process.kill()
        process.wait()
        with manager.acquire_lock("a"):
            assert time.monotonic() - began < 1
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()
