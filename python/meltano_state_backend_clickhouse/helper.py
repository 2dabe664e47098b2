"""The conversation with the ``chstate`` program: JSON lines, see its package ``service``."""

from __future__ import annotations

import collections
import json
import logging
import os
import queue
import sys
import threading
import typing as t

from . import errors, program, signals

if t.TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

PROTOCOL = 1
SLICE = 0.2
"""Seconds of waiting after which a signal that came meanwhile is acted on."""
PATIENCE = 1.0
"""Seconds for which a write that is under way is waited for after a signal."""

_WRITES = ("set", "delete", "set_all", "clear_all", "migrate")

Message = dict[str, t.Any]

logger = logging.getLogger("meltano_state_backend_clickhouse")

_ERRORS: dict[str, type[errors.ClickhouseStateBackendError]] = {
    "lock_lost": errors.LockLostError,
    "connect": errors.ConnectError,
    "invalid": errors.InvalidStateError,
    "corrupt": errors.InvalidStateError,
    "missing_settings": errors.MissingSettingsError,
    "settings": errors.InvalidSettingsError,
    "server": errors.ServerError,
    "protocol": errors.HelperError,
}
_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}


def exception(failure: Mapping[str, t.Any]) -> errors.ClickhouseStateBackendError:
    """Make an exception of an error that the program answered."""
    # Meltano ends the sentence itself.
    reason = str(failure["message"]).rstrip(".")
    if failure["code"] == "locked":
        return errors.StateLockedError(reason, failure.get("holder"))
    return _ERRORS.get(failure["code"], errors.ClickhouseStateBackendError)(reason)


class Helper:
    """One running program, for one set of settings.

    It may be used from several threads: each call has an id, and a thread of
    ours hands each answer to the call that waits for it.
    """

    def __init__(self, uri: str, settings: Mapping[str, t.Any]) -> None:
        """Start the program and tell it where the state is.

        Raises:
            HelperError: when it cannot be started.

        """
        self.lost: dict[int, Message] = {}
        """Why holds ended before their release, by number."""
        self.writes = 0
        """How many writes of any manager it has done, or may have."""
        self.ended = False
        self._child = program.Child(program.find())
        self._why: str | None = None
        self._last_words: collections.deque[str] = collections.deque(maxlen=20)
        self._sending = threading.Lock()
        self._waiting: dict[int, queue.Queue[Message | None]] = {}
        self._last_id = 0
        self._started = False
        self._reader = threading.Thread(target=self._read_answers, name="chstate answers", daemon=True)
        self._logs = threading.Thread(target=self._read_logs, name="chstate logs", daemon=True)
        self._reader.start()
        self._logs.start()
        # The first call goes out without waiting for the answer to this one.
        self._init = self.reserve()
        self._ask(
            self._init,
            "init",
            uri=uri,
            settings=settings,
            command=command(sys.argv),
            log_level=_log_level(),
        )

    def reserve(self) -> int:
        """Give the number of a request to come, for who must be able to call it off from before it is sent."""
        with self._sending:
            self._last_id += 1
            return self._last_id

    def call(self, op: str, request: int | None = None, **fields: t.Any) -> Message:
        """Do one call and give its answer. request is its number, where that was reserved.

        Raises:
            ClickhouseStateBackendError: what the program answered, or that it ended.

        """
        return self._checked(self._answer(request or self.reserve(), op, fields))

    def stream(self, op: str, **fields: t.Any) -> Generator[t.Any, None, None]:
        """Do a call that answers in chunks, and give what is in them one by one.

        More is asked for only as fast as it is used.

        Raises:
            ClickhouseStateBackendError: what the program answered, or that it ended.

        """
        request = self.reserve()
        done = False
        try:
            self._ask(request, op, **fields)
            self._ready(op, fields)
            while True:
                message = self._message(request, op, fields)
                if "chunk" not in message:
                    done = True
                    self._checked(message)
                    return
                yield from message["chunk"]
                self.tell("more", of=request)
        finally:
            self._waiting.pop(request, None)
            if not done:
                self.tell("cancel", of=request)

    def upload(self, op: str, chunks: Iterable[list[t.Any]]) -> Message:
        """Do a call whose input goes up in chunks, and give its answer.

        Raises:
            ClickhouseStateBackendError: what the program answered, or that it ended.

        """
        return self._checked(self._answer(self.reserve(), op, {}, chunks))

    def wrote(self) -> None:
        """Count a write: what anybody was told before may not be so any more."""
        with self._sending:
            self.writes += 1

    def tell(self, op: str, **fields: t.Any) -> None:
        """Send a request that has no answer; nobody hears of it when the program has ended."""
        self._send({"op": op, **fields})

    def close(self, seconds: float) -> None:
        """Let the program give back its locks and end; end it ourselves after that time."""
        self.hang_up()
        if not self.joined(seconds):
            self._child.kill()
            self.joined(1)

    def hang_up(self) -> None:
        """Tell the program to give back its locks and end, without waiting for it."""
        self._send({"id": 0, "op": "shutdown"})
        self._close_requests()

    def joined(self, seconds: float) -> bool:
        """Wait for the program's end, and say whether it came."""
        self._reader.join(seconds)
        return not self._reader.is_alive() and self._child.wait(seconds) is not None

    def abandon(self) -> None:
        """Forget the program, in a process that was forked from the one that it belongs to."""
        if not self.ended:
            self.ended = True
            self._child.abandon()

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._child.pid

    def _ask(self, request: int, op: str, **fields: t.Any) -> None:
        # No SimpleQueue: before Python 3.13 its timeout is lost when a signal comes at the end of it.
        self._waiting[request] = queue.Queue()
        self._send({"id": request, "op": op, **fields})

    def _send(self, message: Message) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        with self._sending:
            if self.ended:
                return
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(self._child.requests, left) :]
            except OSError:
                self._end()  # it has gone; the reader says so to whoever waits
            except BaseException:
                # Half a line is on its way. The program takes the end for the
                # end of this process, and gives back its locks.
                self._end()
                raise

    def _close_requests(self) -> None:
        with self._sending:
            self._end()

    def _end(self) -> None:
        if not self.ended:
            self.ended = True
            os.close(self._child.requests)

    def _ready(self, op: str, fields: Mapping[str, t.Any]) -> None:
        """See to it that the program took its settings, before it answers the request for op."""
        if not self._started:
            message = self._message(self._init, op, fields)
            self._waiting[self._init].put(message)  # for whoever asks at the same time, or again
            self._checked(message)
            self._started = True

    def _answer(
        self, request: int, op: str, fields: Mapping[str, t.Any], chunks: Iterable[list[t.Any]] | None = None
    ) -> Message:
        """Send a request, and what goes up with it, and wait for its one answer."""
        try:
            self._ask(request, op, **fields)
            self._ready(op, fields)
            if chunks is not None:
                for chunk in chunks:
                    self.tell("put", of=request, states=chunk)
                self.tell("put", of=request, last=True)
            return self._message(request, op, fields)
        except BaseException:
            self.tell("cancel", of=request)
            raise
        finally:
            self._waiting.pop(request, None)

    @staticmethod
    def _checked(message: Message) -> Message:
        if failure := message.get("error"):
            raise exception(failure)
        body: Message = message.get("ok") or {}
        return body

    def _message(self, request: int, op: str, fields: Mapping[str, t.Any]) -> Message:
        """Wait for the next message to a request."""
        waiting = self._waiting[request]
        patience = PATIENCE if op in _WRITES else 0.0
        with signals.noted() as asked:
            while True:
                try:
                    message = waiting.get(timeout=SLICE)
                    break
                except queue.Empty:
                    if not self._reader.is_alive() and waiting.empty():
                        message = None  # it ended before it could be asked
                        break
                    if cause := asked():
                        if patience <= 0:
                            raise errors.InterruptedWaitError(_interrupted(cause, op, fields)) from None
                        patience -= SLICE
        if message is None:
            waiting.put(None)  # for whoever asks again
            raise errors.HelperError(self._reason())
        return message

    def _reason(self) -> str:
        if self._why:
            return self._why
        self._logs.join(1)
        said = "; ".join(self._last_words)
        status = self._child.wait(1)
        ended = f"ended with status {status}" if status is not None else "closed its output"
        return (
            f"{self._child.program} {ended} in the middle of its work"
            f"{f' and said: {said}' if said else ''} — run again; its locks free themselves within the lease"
        )

    def _read_answers(self) -> None:
        """Hand each answer to the call that waits for it (a thread of its own)."""
        try:
            for number, line in enumerate(_lines(self._child.answers)):
                try:
                    message = json.loads(line)
                except ValueError:
                    message = {}
                if number == 0:
                    if (spoken := message.get("protocol") if isinstance(message, dict) else None) != PROTOCOL:
                        self._why = _mismatch(self._child.program, spoken)
                        self._child.kill()
                        return
                elif message.get("event") == "lost":
                    self.lost[message["hold"]] = message["error"]
                elif waiting := self._waiting.get(message.get("id", 0)):
                    waiting.put(message)
        finally:
            self._close_requests()
            os.close(self._child.answers)
            for waiting in list(self._waiting.values()):
                waiting.put(None)

    def _read_logs(self) -> None:
        """Pass the program's log on to ours (a thread of its own)."""
        for line in _lines(self._child.logs):
            text = line.decode("utf-8", "replace").strip()
            try:
                entry = json.loads(text)
                level = _LEVELS[entry.pop("level")]
                entry.pop("time", None)
                said = str(entry.pop("msg"))
            except (ValueError, LookupError, TypeError, AttributeError):
                self._last_words.append(text)  # not a log line: the runtime's last words
                continue
            more = "".join(f" {name}={value}" for name, value in entry.items())
            self._last_words.append(said + more)
            logger.log(level, "%s%s", said, more)
        os.close(self._child.logs)


def _lines(fd: int) -> Iterator[bytes]:
    """Give the lines that come from a pipe, of any length."""
    parts: list[bytes] = []
    while data := os.read(fd, 1 << 16):
        first, *rest = data.split(b"\n")
        parts.append(first)
        for part in rest:
            yield b"".join(parts)
            parts = [part]


def _interrupted(cause: str, op: str, fields: Mapping[str, t.Any]) -> str:
    state = f' of state "{fields["state_id"]}"' if "state_id" in fields else ""
    if op in _WRITES:
        return f'{cause} ended the wait for the answer to "{op}"{state}; whether it was done is not known'
    what = "lock" if op == "lock" else f'answer to "{op}"'
    return f"{cause} ended the wait for the {what}{state}; nothing was written"


def _mismatch(path: str, spoken: object) -> str:
    mine = f"{__file__} speaks protocol {PROTOCOL}"
    other = f"{path} speaks protocol {spoken}" if spoken is not None else f"{path} is not a chstate program"
    return f"{mine}, but {other} — reinstall meltano-state-backend-clickhouse, or correct {program.ENV}"


def _log_level() -> str:
    """Give the least level that our log takes, in the program's words."""
    for name, level in _LEVELS.items():
        if logger.isEnabledFor(level):
            return name
    return "ERROR"


_MELTANO = ("meltano", "meltano.exe")
_NAMES_PLUGINS = ("run", "el", "elt", "job")


def command(argv: list[str]) -> str:
    """Say what a person typed, for those who wait for a lock: plugins, but no values that may be secret.

    The words of a program that is not Meltano's may be anything, a URI with its password included.
    """
    name = os.path.basename(argv[0]) if argv else "python"  # noqa: PTH119
    if name == "__main__.py":  # python -m meltano
        name = os.path.basename(os.path.dirname(argv[0]))  # noqa: PTH119, PTH120
    words = [word for word in argv[1:] if not word.startswith("-") and "=" not in word and "://" not in word]
    if name not in _MELTANO:
        words = []
    shown = words if words and words[0] in _NAMES_PLUGINS else words[:2]
    return " ".join([name, *shown])[:200] + f" [pid {os.getpid()}]"
