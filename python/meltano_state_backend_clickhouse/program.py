"""Finding and starting ``chstate``, the program that does the work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import binary
from .errors import HelperError

ENV = "CHSTATE_HELPER"
"""Names another program than the one in the package."""


def find() -> str:
    """Give the path of the program.

    Raises:
        HelperError: where there is none.

    """
    if named := os.environ.get(ENV):
        if not Path(named).is_file():
            msg = f"{ENV} names {named}, which is not there — correct it, or unset it to use the program of the package"
            raise HelperError(msg)
        return named
    if program := binary.locate():
        return str(program)
    where = Path(binary.__file__).with_name("bin")
    msg = (
        f"the chstate program is missing from {where}, so this installation is not whole — "
        f"reinstall meltano-state-backend-clickhouse, or let {ENV} name a chstate program"
    )
    raise HelperError(msg)


class Child:
    """The running program: three pipes and a process.

    The pipes are bare file descriptors, because file objects have locks and
    close what they were given: after a fork, and with a thread that reads, we
    must be the ones who say when.
    """

    def __init__(self, program: str) -> None:
        """Start it.

        Raises:
            HelperError: when the system refuses.

        """
        self.program = program
        child_in, self.requests = os.pipe()
        self.answers, child_out = os.pipe()
        self.logs, child_err = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603
                [program, "helper"],
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                # Ctrl-C goes to Meltano's process group: Meltano decides what it means.
                start_new_session=sys.platform != "win32",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            for fd in (self.requests, self.answers, self.logs):
                os.close(fd)
            msg = (
                f"cannot start {program}: {error.strerror or error} — where programs may not be run "
                f"from there (noexec), let {ENV} name a copy elsewhere"
            )
            raise HelperError(msg) from error
        finally:
            for fd in (child_in, child_out, child_err):
                os.close(fd)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self, seconds: float) -> int | None:
        """Wait for its end and give its exit status, None when it goes on."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    def abandon(self) -> None:
        """Forget it, in a process that was forked from the one that it belongs to."""
        for fd in (self.requests, self.answers, self.logs):
            os.close(fd)
        self._process.returncode = 0  # else its finalizer would look after a child that is not ours
