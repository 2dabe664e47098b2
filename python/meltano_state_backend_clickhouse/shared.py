"""One program for each set of settings in a process, counted, and its end."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
import typing as t

from . import unsaved
from .helper import Helper

CLOSE_SECONDS = 5.0
"""Seconds that ``close`` waits for the program's end before it ends it."""
EXIT_SECONDS = 1.0
"""Seconds that the end of the process waits for all of them."""


class _Shared:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.helpers: dict[str, Helper] = {}
        self.users: dict[str, int] = {}


_shared = _Shared()


class Use:
    """The use that one manager makes of a shared program."""

    def __init__(self, uri: str, settings: t.Mapping[str, t.Any]) -> None:
        """Start nothing yet."""
        self._uri = uri
        self._settings = settings
        self.key = json.dumps([uri, settings], sort_keys=True)
        self._counted: _Shared | None = None  # where it is counted: not in a process forked since

    def helper(self) -> Helper:
        """Give the program, started if need be, or again after it ended by itself.

        Raises:
            HelperError: when it cannot be started.

        """
        helper = _shared.helpers.get(self.key)
        if self._counted is _shared and helper is not None and not helper.ended:
            return helper
        with _shared.lock:
            helper = _shared.helpers.get(self.key)
            if helper is None or helper.ended:
                helper = _shared.helpers[self.key] = Helper(self._uri, self._settings)
            if self._counted is not _shared:
                self._counted = _shared
                _shared.users[self.key] = _shared.users.get(self.key, 0) + 1
            return helper

    def close(self) -> None:
        """End the use; the last of them ends the program."""
        with _shared.lock:
            if self._counted is not _shared:
                return
            self._counted = None
            _shared.users[self.key] -= 1
            if _shared.users[self.key]:
                return
            del _shared.users[self.key]
            helper = _shared.helpers.pop(self.key, None)
        if helper is not None:
            helper.close(CLOSE_SECONDS)


def _after_fork() -> None:
    """Give up what belongs to the parent process: else its helper would not see its end."""
    global _shared  # noqa: PLW0603
    helpers = list(_shared.helpers.values())
    _shared = _Shared()
    for helper in helpers:
        helper.abandon()


def _at_exit() -> None:
    """End all programs, whose locks would otherwise stay for a lease, and answer for what was not saved."""
    deadline = time.monotonic() + EXIT_SECONDS
    with _shared.lock:
        helpers = list(_shared.helpers.values())
        _shared.helpers.clear()
    for helper in helpers:
        helper.hang_up()
    for helper in helpers:
        helper.joined(max(0.0, deadline - time.monotonic()))
    unsaved.answer_for()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
