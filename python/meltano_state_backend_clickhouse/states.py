"""States as Meltano has them, and as they travel."""

from __future__ import annotations

import json
import logging
import typing as t

from meltano.core.state_store.base import MeltanoState

from .errors import InvalidStateError, StateMergeError

logger = logging.getLogger("meltano_state_backend_clickhouse")

Wire = dict[str, t.Any]


def checked_id(state_id: str) -> str:
    """Give a state id that can travel.

    Raises:
        InvalidStateError: when it cannot.

    """
    if not isinstance(state_id, str) or not state_id:
        msg = f"a state id must be a text that is not empty, not {state_id!r}"
        raise InvalidStateError(msg)
    try:
        state_id.encode()
    except UnicodeEncodeError:
        msg = f"the state id {state_id!r} holds half a surrogate pair and so cannot be stored — correct the id"
        raise InvalidStateError(msg) from None
    return state_id


def to_wire(state: MeltanoState) -> Wire:
    """Make a state ready to travel: each half as JSON text, None for an empty one.

    Raises:
        InvalidStateError: when it is not a state that can be stored.

    """
    state_id = checked_id(state.state_id)
    return {
        "id": state_id,
        "partial": _text(state_id, "partial", state.partial_state),
        "completed": _text(state_id, "completed", state.completed_state),
    }


def _text(state_id: str, half: str, value: t.Any) -> str | None:
    if value is not None and not isinstance(value, dict):
        msg = (
            f'cannot store state "{state_id}": its {half} half is {_kind(value)}, not an object — '
            "give a JSON object, or null for none; nothing was written"
        )
        raise InvalidStateError(msg)
    if not value:
        return None
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        msg = f'cannot store state "{state_id}": its {half} half is not JSON ({error}); nothing was written'
        raise InvalidStateError(msg) from error


def from_wire(wire: Wire) -> MeltanoState:
    """Make a state of what came.

    Raises:
        InvalidStateError: when what is stored is not a state.

    """
    state_id = wire["id"]
    partial = _half(state_id, "partial", wire["partial"])
    completed = _half(state_id, "completed", wire["completed"])
    kind = MeltanoState if clash(partial, completed) is None else _ClashingState
    return kind(state_id=state_id, partial_state=partial, completed_state=completed)


def _half(state_id: str, half: str, text: str | None) -> dict[str, t.Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f'cannot read state "{state_id}": its {half} half is not JSON ({error}) — set it anew, or clear it'
        raise InvalidStateError(msg) from error
    if not isinstance(value, dict):
        msg = (
            f'cannot read state "{state_id}": its {half} half is {_kind(value)}, not an object — '
            "set it anew, or clear it"
        )
        raise InvalidStateError(msg)
    return value


def _kind(value: t.Any) -> str:
    kinds = {str: "a JSON string", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return kinds.get(type(value), f"of type {type(value).__name__}")


def clash(source: t.Any, target: t.Any, path: tuple[str, ...] = ()) -> str | None:
    """Say where Meltano's merge of two states fails: an object over a value that is none.

    None when it does not.
    """
    for key, value in source.items():
        if isinstance(value, dict) and key in target:
            below = (*path, str(key))
            if not isinstance(target[key], dict):
                return ".".join(below)
            if found := clash(value, target[key], below):
                return found
    return None


def clash_error(state_id: str, where: str) -> StateMergeError:
    """Name the state and the place that do not fit together."""
    msg = (
        f'cannot merge state "{state_id}": the newer half has an object at "{where}", the older one a bare value; '
        "the state is kept as it is — set it anew, or clear it"
    )
    return StateMergeError(msg)


def forgets(state: MeltanoState) -> bool:
    """Say whether a state is a finished run's that has no bookmark at all."""
    completed = state.completed_state
    return isinstance(completed, dict) and "singer_state" in completed and not completed["singer_state"]


def listed(wire: Wire) -> MeltanoState:
    """Make a state of what came, for a list of all of them.

    One that is of no use does not keep the others from being listed: ``meltano state list`` marks it.
    """
    try:
        state = from_wire(wire)
        if isinstance(state, _ClashingState):
            state.json_merged()  # says why
    except (InvalidStateError, StateMergeError) as error:
        logger.warning("%s", error.reason)
        return _UnusableState.because(wire["id"], error)
    return state


class _UnusableState(MeltanoState):
    """A state in a list that cannot be used: Meltano finds it invalid, and nobody gets halves of it."""

    __slots__ = ("_error",)

    @classmethod
    def because(cls, state_id: str, error: Exception) -> _UnusableState:
        self = cls.__new__(cls)
        object.__setattr__(self, "state_id", state_id)
        object.__setattr__(self, "_error", error)
        return self

    def __getattr__(self, name: str) -> t.Any:
        """Fail for what was never set: the halves."""
        if name in {"partial_state", "completed_state"}:
            raise self._error
        raise AttributeError(name)

    def json_merged(self) -> str:
        """Give an object that is no state of Meltano's."""
        return json.dumps({"unusable": str(self._error)})


class _ClashingState(MeltanoState):
    """A state whose halves do not fit together: it can be looked at, stored and exported, but not merged."""

    __slots__ = ()

    def json_merged(self) -> str:
        """Fail as Meltano's own does, but say of which state.

        Raises:
            StateMergeError: always.

        """
        raise clash_error(self.state_id, clash(self.partial_state, self.completed_state) or "?")
