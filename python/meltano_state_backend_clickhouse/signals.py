"""Letting a signal end a wait.

Meltano writes bookmarks from its event loop's own thread. While that thread
waits for us, the loop cannot act on Ctrl-C or SIGTERM: asyncio only notes them,
to be dealt with when the loop runs again. So whoever waits must notice.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def noted() -> Iterator[list[int]]:
    """Give a list to which each SIGINT and SIGTERM is added as it comes.

    The handlers that are in force are called as ever; where there is none, the
    signal does what it always does. Only the main thread gets signals, so in
    any other the list stays empty.
    """
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def noting(
        handler: t.Callable[[int, FrameType | None], t.Any],
    ) -> t.Callable[[int, FrameType | None], t.Any]:
        def note(signum: int, frame: FrameType | None) -> None:
            seen.append(signum)
            handler(signum, frame)

        return note

    before = []
    try:
        for signum in _SIGNALS:
            handler = signal.getsignal(signum)
            if callable(handler):
                before.append((signum, handler))
                signal.signal(signum, noting(handler))
        yield seen
    finally:
        for signum, handler in before:
            signal.signal(signum, handler)
