"""Letting a signal end a wait.

Meltano writes bookmarks from its event loop's own thread. While that thread
waits for us, the loop cannot act on Ctrl-C or SIGTERM: asyncio only notes them,
to be dealt with when the loop runs again. So whoever waits must notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_FRESH_SECONDS = 1.0
"""For so long a signal that came during one call counts for the next: the loop did not run in between."""

_last: tuple[float, str] | None = None


@contextlib.contextmanager
def noted() -> Iterator[Callable[[], str | None]]:
    """Give a function that names what asks for the wait to end, None while nothing does.

    The handlers that are in force are called as ever; where there is none, the
    signal does what it always does. Only the main thread gets signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield _cancellation
        return

    def noting(handler: Callable[[int, FrameType | None], t.Any]) -> Callable[[int, FrameType | None], t.Any]:
        def note(signum: int, frame: FrameType | None) -> None:
            global _last  # noqa: PLW0603
            handler(signum, frame)  # one that raises has ended the wait itself
            _last = time.monotonic(), signal.Signals(signum).name

        return note

    def asked() -> str | None:
        if _last is not None and _last[0] > since:
            return _last[1]
        return _cancellation()

    since = time.monotonic() - _FRESH_SECONDS
    before = []
    try:
        for signum in _SIGNALS:
            handler = signal.getsignal(signum)
            if callable(handler):
                ours = noting(handler)
                before.append((signum, handler, ours))
                signal.signal(signum, ours)
        yield asked
    finally:
        for signum, handler, ours in before:
            if signal.getsignal(signum) is ours:  # else a handler has set another one
                signal.signal(signum, handler)


def _cancellation() -> str | None:
    """Name the cancellation of the task that calls us, which came before we were called."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None
    if task is None:
        return None
    # Before 3.11 a task does not tell.
    cancelled = task.cancelling() if hasattr(task, "cancelling") else getattr(task, "_must_cancel", False)
    return "the task's cancellation" if cancelled else None
