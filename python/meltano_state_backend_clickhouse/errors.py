"""What can go wrong, in terms that Meltano understands.

Each class derives from ``MeltanoError``, so that Meltano prints a message and
no traceback, and where Meltano has a class of its own for the case, from that
one too, so that code which catches Meltano's class catches ours.

The reason alone says what was tried, what happened and what to do next:
on reading, Meltano logs ``args[0]`` and nothing else.
"""

from __future__ import annotations

import typing as t

from meltano.core.error import MeltanoError
from meltano.core.state_store.base import (
    MissingStateBackendSettingsError,
    StateIDLockedError,
    UnsupportedStateBackendURIError,
)


class ClickhouseStateBackendError(MeltanoError):
    """Base of everything that this add-on raises."""


class MissingSettingsError(
    ClickhouseStateBackendError,
    MissingStateBackendSettingsError,
):
    """A setting that there must be is not there, such as the user."""


class InvalidSettingsError(ClickhouseStateBackendError, ValueError):
    """A setting has a value that cannot be used."""


class InvalidURIError(InvalidSettingsError, UnsupportedStateBackendURIError):
    """The state backend's URI cannot be read."""


class StateLockedError(ClickhouseStateBackendError, StateIDLockedError):
    """Somebody else holds the state id's lock.

    Attributes:
        holder: who holds it, as the server's table tells: ``host``, ``pid``,
            ``user``, ``command``, ``since`` and so on; empty when not known.

    """

    def __init__(
        self,
        reason: str,
        holder: t.Mapping[str, t.Any] | None = None,
    ) -> None:
        """Keep the holder beside the reason."""
        super().__init__(reason)
        self.holder: dict[str, t.Any] = dict(holder or {})


class LockLostError(ClickhouseStateBackendError):
    """The lock ended before the work done under it was known to be safe."""


class ConnectError(ClickhouseStateBackendError):
    """The server cannot be reached, or it refused the login."""


class ServerError(ClickhouseStateBackendError):
    """The server refused a statement, or its tables are not what they must be."""


class InvalidStateError(ClickhouseStateBackendError, ValueError):
    """A state, or its id, that cannot be stored or read."""


class StateMergeError(ClickhouseStateBackendError, TypeError):
    """Two states do not fit together: an object on one side, a bare value on the other."""


class InterruptedWaitError(ClickhouseStateBackendError):
    """A signal ended the wait for an answer."""


class HelperError(ClickhouseStateBackendError):
    """The ``chstate`` program that does the work is missing, too old, or died."""
