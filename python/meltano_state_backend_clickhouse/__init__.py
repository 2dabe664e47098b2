"""Meltano's state, kept in ClickHouse.

The manager is loaded when it is asked for: Meltano imports this package, for
the settings, in every command, also in those that touch no state.
"""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from .backend import ClickhouseStateStoreManager

__all__ = ["ClickhouseStateStoreManager"]


def __getattr__(name: str) -> t.Any:
    if name in __all__:
        from . import backend

        return getattr(backend, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
