"""A bookmark that was not saved must not end green.

Meltano 3.7 goes on when a bookmark cannot be written, and newer ones sometimes
do: the run then ends with status 0, and the next one loads everything again,
or skips what it should not. So we remember which writes failed, and the end of
Meltano's own process answers for those that nothing has made good.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading

logger = logging.getLogger("meltano_state_backend_clickhouse")

_lock = threading.Lock()
_process = os.getpid()
_reasons: dict[tuple[str, str], str] = {}


def failed(store: str, state_id: str, reason: str) -> None:
    """Remember a write that failed, and say so the first time."""
    global _process  # noqa: PLW0603
    # What cannot be encoded cannot be logged: half a surrogate pair is written out.
    state_id, reason = (text.encode(errors="backslashreplace").decode() for text in (state_id, reason))
    with _lock:
        if _process != os.getpid():  # what a parent process could not write is its own affair
            _process = os.getpid()
            _reasons.clear()
        known = (store, state_id) in _reasons
        _reasons[store, state_id] = reason
    if not known:
        logger.warning('State "%s" was not saved: %s', state_id, reason)


def saved(store: str, state_id: str) -> None:
    """Forget the failure of an earlier write: a later one was good."""
    if _reasons:
        with _lock:
            _reasons.pop((store, state_id), None)


def answer_for() -> None:
    """Log what was not saved, and let Meltano's process fail for it.

    The last thing that happens in the process where it fails.
    """
    if _process != os.getpid() or not _reasons:
        return
    # Set where Meltano's command line has run to its end; this is no business
    # of ours where it is used as a library.
    cli = sys.modules.get("meltano.cli")
    status = getattr(cli, "exit_code", None)
    if status is None:
        return
    for (_, state_id), reason in _reasons.items():
        logger.error('State "%s" is not saved, so this run has failed: %s', state_id, reason)
    if status == 0:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(1)
