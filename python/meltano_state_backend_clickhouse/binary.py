"""The ``chstate`` program that an installation carries, and the command that starts it.

Nothing of Meltano is imported here: the command is to start at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_NAME = "chstate.exe" if sys.platform == "win32" else "chstate"


def locate() -> Path | None:
    """Give the path of the program in the package, None where there is none."""
    here = Path(__file__).parent
    # An editable install keeps the Python files where they are and the program
    # in site-packages, under the package's name.
    for package in (here, *(Path(entry, here.name) for entry in sys.path)):
        program = package / "bin" / _NAME
        if program.is_file():
            return program
    return None


def main() -> int:
    """Be the ``chstate`` command: the same program, with the same arguments.

    Returns:
        Its exit code, where it could not take this process's place.

    """
    program = locate()
    if program is None:
        where = Path(__file__).with_name("bin")
        sys.stderr.write(
            f"chstate: the program is missing from {where}, so this installation is not whole — "
            "reinstall meltano-state-backend-clickhouse\n",
        )
        return 1
    arguments = [str(program), *sys.argv[1:]]
    if sys.platform != "win32":  # there a program cannot take another's place
        os.execv(program, arguments)  # noqa: S606
    return subprocess.call(arguments)  # noqa: S603
