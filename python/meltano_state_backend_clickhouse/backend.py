"""The state backend: Meltano's calls, handed to the ``chstate`` program."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
import typing as t
from decimal import Decimal

from meltano.core.state_store.base import StateStoreManager
from meltano.core.utils import merge

from . import unsaved
from .errors import ClickhouseStateBackendError, LockLostError
from .helper import exception
from .readahead import ReadAhead
from .settings import *  # noqa: F403  the CLICKHOUSE_… definitions are part of this module's interface
from .settings import NAMES, check_own
from .shared import Use
from .states import checked_id, clash, clash_error, forgets, from_wire, to_wire
from .uri import connection_params, connection_params_from_uri, table_names

if sys.version_info >= (3, 12):
    from typing import override
else:
    from typing_extensions import override

if t.TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from clickhouse_connect.driver.client import Client
    from meltano.core.state_store.base import MeltanoState

    from .helper import Helper, Message
    from .states import Wire

__all__ = [
    "DEFAULT_HOST",
    "DEFAULT_PORT",
    "DEFAULT_SCHEMA_NAME",
    "DEFAULT_TABLE_NAME",
    "LOCK_SETTLE_SECONDS",
    "LOCK_TIMEOUT_SECONDS",
    "STALE_LOCK_SECONDS",
    "ClickhouseStateBackendError",
    "ClickhouseStateStoreManager",
    "connection_params_from_uri",
]
__all__ += [name for name in globals() if name.startswith("CLICKHOUSE_")]

DEFAULT_HOST = "localhost"
DEFAULT_PORT = 8123
DEFAULT_SCHEMA_NAME = "meltano"
DEFAULT_TABLE_NAME = "state"

# Kept for code that reads them; what holds are the settings, whose defaults they are.
LOCK_TIMEOUT_SECONDS = 30
"""How long a lock is waited for (setting ``lock_wait_seconds``)."""
STALE_LOCK_SECONDS = 300
"""How long a lock row of the older plugin counts. Our own leases are shorter (``lock_timeout_seconds``)."""
LOCK_SETTLE_SECONDS = 1.0
"""How long the strategy ``settle`` waits (setting ``lock_settle_seconds``)."""

logger = logging.getLogger("meltano_state_backend_clickhouse")

_TOLD_FOR = 0.5
"""Seconds for which the revision of a locked state, as it was told, counts; it may be as old when it is told."""
_UPLOAD_STATES = 1000
_UPLOAD_BYTES = 1 << 20


class _Hold:
    """The lock of one state id, held by this manager."""

    def __init__(self, helper: Helper, answer: Message, state_id: str, writes: int) -> None:
        self.helper = helper
        self.number: int = answer["hold"]
        self.state_id = state_id
        self.released = False
        self.learn(answer, writes)

    def learn(self, answer: Message, writes: int) -> None:
        """Note the revision of the stored state, where the program told it.

        It counts as long as the program has done no more writes than those.
        """
        self._revision: int | None = answer.get("revision")
        self._writes = writes
        self._told = time.monotonic()

    @property
    def revision(self) -> int | None:
        """Which revision of the state is stored; None when that is not known, or was told too long ago."""
        current = self._writes == self.helper.writes and time.monotonic() - self._told < _TOLD_FOR
        return self._revision if current else None

    def check(self) -> None:
        """Raise when the lock is not held any more."""
        if failure := self.helper.lost.get(self.number):
            raise exception(failure)
        if self.helper.ended:
            msg = (
                f'the lock of state "{self.state_id}" is lost, because the program that held it has ended — '
                "what was written under it before is stored; run again"
            )
            raise LockLostError(msg)

    def release(self) -> None:
        """Give the lock back, without waiting for it."""
        self.helper.tell("release", hold=self.number)
        self.helper.lost.pop(self.number, None)


class ClickhouseStateStoreManager(StateStoreManager):
    """State backend for ClickHouse.

    A manager may be used from several threads. The first call that needs the
    server starts the ``chstate`` program, which all managers of this process
    with the same settings share; ``close`` ends it with the last of them, and a
    call after that starts it again.

    Attributes:
        uri: the URI as it was given.
        conn_params: keyword arguments for ``clickhouse_connect.get_client``.
        schema: the database of the tables.
        table: the name of the state table.
        state_table: schema and state table, quoted for SQL.
        lock_table: schema and lock table, quoted for SQL.

    """

    def __init__(self, uri: str, **settings: t.Any) -> None:
        """Check the settings; nothing is connected yet.

        Args:
            uri: ``clickhouse://user:password@host:port/database?parameters``.
            settings: by the last part of their names (``host``, ``port``,
                ``lock_timeout_seconds``, ...); they go before what the URI says.
                Names that are no settings of ours are Meltano's affair.

        Raises:
            MissingSettingsError: when user or database are given nowhere.
            InvalidSettingsError: when a value cannot be used.

        """
        super().__init__(**settings)
        given = {name: value for name, value in settings.items() if name in NAMES and value is not None}
        check_own(given)
        self.uri = uri
        self.conn_params = connection_params(uri, given)
        self.schema, self.table = table_names(uri, given)
        self.state_table = f"{_quoted(self.schema)}.{_quoted(self.table)}"
        self.lock_table = f"{_quoted(self.schema)}.{_quoted(f'{self.table}_lock')}"
        # Decimals come from Meltano's own parsing; their text says what was written.
        self._use = Use(uri, {n: str(v) if isinstance(v, Decimal) else v for n, v in given.items()})
        self._holds: dict[str, _Hold] = {}
        # The state last read or written under a lock, and its revision: of a run's
        # many partial updates, hardly one has to ask for it.
        self._last: tuple[Helper, int, Wire] | None = None
        self._ahead: ReadAhead | None = None
        self._client: Client | None = None

    @property
    @override
    def label(self) -> str:
        """Name of the backend, for Meltano's messages."""
        return "ClickHouse"

    @override
    def set(self, state: MeltanoState) -> None:
        """Store both halves of a state over whatever is there.

        Args:
            state: the state; an empty or missing half is stored as such.

        """
        with self._answering_for(state.state_id):
            wire = to_wire(state)
            hold = self._holds.get(wire["id"])
            with self._writing() as before:
                answer = self._call("set", wire["id"], hold, partial=wire["partial"], completed=wire["completed"])
            self._learn(hold, wire, answer, before + 1)
        if forgets(state):
            logger.warning(
                'State "%s" was written without any bookmark, over whatever was there: the next run starts from the '
                "beginning. `chstate history` and `chstate rollback` bring the one before back.",
                state.state_id,
            )
        unsaved.saved(self._use.key, state.state_id)

    @override
    def get(self, state_id: str) -> MeltanoState | None:
        """Give the state of an id, as it was last stored; None when there is none.

        Who asks for the ids that ``get_state_ids`` gave, one after the other and without pausing,
        gets the states as they were when the walk began, unless this process has written since.

        Args:
            state_id: the state id.

        """
        hold = self._holds.get(state_id)
        # What was read ahead may be older than the lock.
        if not hold and (ahead := self._ahead) and (state := ahead.take(state_id)):
            return state
        if hold and (wire := self._known(hold)):
            hold.check()
            return from_wire(wire)
        writes = self._use.helper().writes
        answer = self._call("get", checked_id(state_id), hold)
        wire = answer["state"]
        if wire is None:
            return None
        self._learn(hold, wire, answer, writes)
        return from_wire(wire)

    @override
    def delete(self, state_id: str) -> None:
        """Delete the state of an id; none there is no error.

        Args:
            state_id: the state id.

        """
        with self._writing():
            self._call("delete", checked_id(state_id), self._holds.get(state_id))
        unsaved.saved(self._use.key, state_id)

    @override
    def get_state_ids(self, pattern: str | None = None) -> list[str]:
        """Give the ids of all states, in order.

        Args:
            pattern: a glob pattern (``* ? [abc] [!abc]``) that they match.

        """
        self._forget_ahead()
        ids = list(self._use.helper().stream("ids", pattern=pattern or ""))
        if ids:
            self._ahead = ReadAhead(
                ids[0],
                lambda: self._use.helper().stream("all", pattern=pattern or ""),
                lambda: (self._use.helper(), self._use.helper().writes),
            )
        return ids

    def get_all(self, pattern: str | None = None) -> Iterator[MeltanoState]:
        """Yield all states, in the order of their ids, as they come from one query.

        Args:
            pattern: a glob pattern (``* ? [abc] [!abc]``) that their ids match.

        """
        for wire in self._use.helper().stream("all", pattern=pattern or ""):
            yield from_wire(wire)

    def set_all(self, states: Iterable[MeltanoState]) -> int:
        """Store many states over whatever is there; all are read and checked before any is written.

        Args:
            states: the states.

        Returns:
            How many they were.

        """
        wires = []
        try:
            for state in states:
                wires.append(to_wire(state))  # noqa: PERF401  the number read is part of the error
        except ClickhouseStateBackendError:
            raise
        except Exception as error:
            msg = f"entry {len(wires) + 1} of the states cannot be read ({error}); nothing was written"
            raise ClickhouseStateBackendError(msg) from error
        with self._writing():
            count: int = self._use.helper().upload("set_all", _chunks(wires))["count"]
        for wire in wires:
            unsaved.saved(self._use.key, wire["id"])
        return count

    @override
    def clear_all(self) -> int:
        """Delete the states that are there now.

        Returns:
            How many they were.

        """
        with self._writing():
            count: int = self._use.helper().call("clear_all")["count"]
        return count

    def migrate(self) -> None:
        """Bring tables that the older plugin made up to date (``meltano upgrade``)."""
        self._use.helper().call("migrate")

    @override
    @contextlib.contextmanager
    def acquire_lock(self, state_id: str, *, retry_seconds: float = 1) -> Generator[None, None, None]:
        """Hold the lock of a state id.

        Calls of this manager for that id belong to the hold, and fail once it is lost.

        Args:
            state_id: the state id.
            retry_seconds: not used: who waits is woken, or looks at most
                ``lock_retry_seconds`` after its last look.

        Raises:
            StateLockedError: naming the holder, when somebody else keeps it for
                longer than ``lock_wait_seconds``.
            LockLostError: when the lock ended before the work under it did.

        """
        self._forget_ahead()
        with self._answering_for(state_id):
            helper = self._use.helper()
            writes, request, hold = helper.writes, helper.reserve(), None
            try:
                answer = helper.call("lock", request, state_id=checked_id(state_id))
                hold = self._holds[state_id] = _Hold(helper, answer, state_id, writes)
                yield
                hold.check()
            finally:
                self._let_go(helper, request, hold)

    @override
    def close(self) -> None:
        """Let go of the program, which ends with the last manager that uses it, and of the client."""
        self._forget_ahead()
        self._use.close()
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @property
    def client(self) -> Client:
        """A clickhouse-connect client for the same server, made when first asked for.

        The add-on itself does not use it.
        """
        if self._client is None:
            try:
                import clickhouse_connect
            except ImportError as error:
                msg = (
                    "the attribute `client` needs the package clickhouse-connect, which this add-on does not — "
                    "install it beside Meltano: pip install clickhouse-connect"
                )
                raise ClickhouseStateBackendError(msg) from error
            self._client = clickhouse_connect.get_client(**self.conn_params)
        return self._client

    @client.setter
    def client(self, value: Client) -> None:
        self._client = value

    def _let_go(self, helper: Helper, request: int, hold: _Hold | None) -> None:
        """Give a lock back, or call its request off, whatever signal comes meanwhile."""
        try:
            if hold is None:
                helper.tell("cancel", of=request)
                return
            if self._holds.get(hold.state_id) is hold:  # else it was lost, and another thread has the lock by now
                del self._holds[hold.state_id]
            hold.released = True
            hold.release()
        except BaseException:
            helper.tell("cancel", of=request)  # that gives back what it was granted
            raise

    def _ensure_tables(self) -> None:
        """Make the tables that are missing; every first call does."""
        self._use.helper().call("ensure")

    def _call(self, op: str, state_id: str, hold: _Hold | None, **fields: t.Any) -> Message:
        """Do a call for a state id, under the hold that this manager has of it, if any."""
        if hold is not None:
            hold.check()
            try:
                return hold.helper.call(op, state_id=state_id, hold=hold.number, **fields)
            except LockLostError:
                # Another thread's hold, which that one gave back meanwhile, was
                # never this call's. One that was lost is told to whoever has it.
                if not hold.released or hold.number in hold.helper.lost:
                    raise
        return self._use.helper().call(op, state_id=state_id, **fields)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[int]:
        """Count a write as it ends, however it does; give the number of those before it."""
        self._forget_ahead()
        helper = self._use.helper()
        before = helper.writes
        try:
            yield before
        finally:
            helper.wrote()

    def _learn(self, hold: _Hold | None, wire: Wire, answer: Message, writes: int) -> None:
        """Keep the state that an answer told the revision of."""
        if hold:
            hold.learn(answer, writes)
            if revision := hold.revision:
                self._last = hold.helper, revision, wire

    def _known(self, hold: _Hold) -> Wire | None:
        """Give the state under a hold when it is the one that this manager last read or wrote."""
        if self._last is None:
            return None
        helper, revision, wire = self._last
        same = helper is hold.helper and wire["id"] == hold.state_id and revision == hold.revision
        return wire if same else None

    def _forget_ahead(self) -> None:
        if ahead := self._ahead:
            self._ahead = None
            ahead.close()

    @contextlib.contextmanager
    def _answering_for(self, state_id: str) -> Iterator[None]:
        """Remember a failure to write, and name the state in it."""
        try:
            yield
        except Exception as error:
            named: Exception = error
            if isinstance(error, TypeError) and (where := _merge_clash(error)):
                named = clash_error(state_id, where)
            reason = getattr(named, "reason", None) or str(named)
            unsaved.failed(self._use.key, str(state_id), str(reason))
            if named is error:
                raise
            raise named from error


def _merge_clash(error: TypeError) -> str | None:
    """Say where Meltano's merge of two states failed, None when it was not that which failed."""
    calls = []
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is merge.__code__:
            calls.append(traceback.tb_frame.f_locals)
        traceback = traceback.tb_next
    if not calls:
        return None
    return clash(calls[0]["src"], calls[0]["dest"]) or "?"


def _chunks(wires: list[Wire]) -> Iterator[list[Wire]]:
    chunk: list[Wire] = []
    size = 0
    for wire in wires:
        chunk.append(wire)
        size += len(wire["partial"] or "") + len(wire["completed"] or "")
        if len(chunk) == _UPLOAD_STATES or size >= _UPLOAD_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
