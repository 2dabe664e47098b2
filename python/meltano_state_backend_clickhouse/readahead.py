"""States read ahead for ``meltano state list``, which asks for the ids and then for each state."""

from __future__ import annotations

import threading
import time
import typing as t

from .states import listed

if t.TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from meltano.core.state_store.base import MeltanoState

    from .states import Wire

IDLE_SECONDS = 1.0
"""A state asked for later than this after the one before is read anew."""


class ReadAhead:
    """Answers the calls of ``get`` that walk through a list of ids in its order.

    The states come from one query, in the order of the ids, and no faster than
    they are used. Each is given once, so that whoever asks again gets what is
    there by then. None is given once ``stamp`` is another than it was at first:
    something was written, or another program serves us.
    """

    def __init__(
        self, first: str, states: Callable[[], Generator[Wire, None, None]], stamp: Callable[[], object]
    ) -> None:
        """Read nothing yet: that begins when the first id of the list is asked for."""
        self._first = first
        self._open = states
        self._stamp = stamp
        self._was = stamp()
        self._states: Generator[Wire, None, None] | None = None
        self._next: Wire | None = None
        self._used = time.monotonic()
        self._busy = threading.Lock()

    def take(self, state_id: str) -> MeltanoState | None:
        """Give the state, None when it is not at hand and must be asked for."""
        if not self._busy.acquire(blocking=False):  # another thread walks through the list
            return None
        try:
            wire = self._take(state_id)
        finally:
            self._busy.release()
        return None if wire is None else listed(wire)

    def _take(self, state_id: str) -> Wire | None:
        late = time.monotonic() - self._used > IDLE_SECONDS
        if late or self._stamp() != self._was or (self._states is None and state_id != self._first):
            self._close()
            return None
        if self._states is None:
            self._states = self._open()
        # Both the list and the states are in the order of their UTF-8 bytes,
        # which is that of Python's strings.
        while self._next is None or self._next["id"] < state_id:
            self._next = next(self._states, None)
            if self._next is None:
                self._close()
                return None
        self._used = time.monotonic()
        if self._next["id"] != state_id:
            return None
        found, self._next = self._next, None
        return found

    def close(self) -> None:
        """Read no further."""
        with self._busy:
            self._close()

    def _close(self) -> None:
        self._first = ""
        self._next = None
        states, self._states = self._states, None
        if states is not None:
            states.close()
