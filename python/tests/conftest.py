"""A real ClickHouse, the add-on on it, and Meltano projects that use it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import select
import signal
import subprocess
import sys
import typing as t

import clickhouse_connect
import pytest

from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager, connection_params_from_uri

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickhouse_connect.driver.client import Client

ROOT = pathlib.Path(__file__).parents[2]
CASES = ROOT / "testdata" / "cases"
PLUGINS = pathlib.Path(__file__).parent / "plugins"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts its background jobs so, and they hand it on: then no
    # program under test could be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the URI of a server: CH_TEST_URI, or the local engine, with a login of its own."""
    if given := os.environ.get("CH_TEST_URI"):
        yield given
        return
    password = "p@ss:w/rd#1"
    engine = subprocess.Popen(
        [
            ROOT / "bin" / "chstate-engine",
            "serve",
            "--data",
            tmp_path_factory.mktemp("engine") / "data",
            "--listen",
            "127.0.0.1:0",
            "--user",
            "etl",
            "--parent-pid",
            str(os.getpid()),
        ],
        env={**os.environ, "CHSTATE_ENGINE_PASSWORD": password},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert engine.stdout is not None
        assert select.select([engine.stdout], [], [], 60)[0], "the engine did not start within a minute"
        word, address, *_ = engine.stdout.readline().split()
        assert word == "ready"
        yield f"clickhouse://etl:p%40ss:w%2Frd%231@{address.removeprefix('http://')}/default"
    finally:
        engine.send_signal(signal.SIGTERM)
        engine.wait(30)


@pytest.fixture(scope="session")
def client(server: str) -> Iterator[Client]:
    """Give a client that looks at the tables from outside."""
    params = connection_params_from_uri(server)
    with contextlib.closing(clickhouse_connect.get_client(**params)) as client:
        yield client


@pytest.fixture
def schema(client: Client) -> Iterator[str]:
    """Give a schema of the test's own."""
    name = f"py_{secrets.token_hex(6)}"
    yield name
    client.command(f"DROP DATABASE IF EXISTS {name} SYNC")


@pytest.fixture
def uri(server: str, schema: str) -> str:
    """Give the URI of a store of the test's own."""
    return f"{server}{'&' if '?' in server else '?'}schema={schema}"


@pytest.fixture
def make(uri: str) -> Iterator[Callable[..., ClickhouseStateStoreManager]]:
    """Give a maker of managers of that store."""
    made = []

    def maker(uri: str = uri, **settings: t.Any) -> ClickhouseStateStoreManager:
        made.append(ClickhouseStateStoreManager(uri, **settings))
        return made[-1]

    yield maker
    for manager in made:
        manager.close()


@pytest.fixture
def manager(make: Callable[..., ClickhouseStateStoreManager]) -> ClickhouseStateStoreManager:
    """Give a manager of that store."""
    return make()


class Project:
    """A Meltano project whose state is in a store of the test's own."""

    def __init__(self, root: pathlib.Path, version: str, meltano: pathlib.Path, uri: str) -> None:
        self.root = root
        self.version = version
        self.meltano = meltano
        self.env = {
            **os.environ,
            "MELTANO_STATE_BACKEND_URI": uri,
            "MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false",
            "MELTANO_CLI_DISABLE_VERSION_CHECK": "true",
            "NO_COLOR": "1",
        }

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [self.meltano, *args],
            cwd=self.root,
            env={**self.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *args: str, status: int = 0, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command that ends with a status."""
        process = self.start(*args, **env)
        out, err = process.communicate(stdin, timeout=100)
        assert process.returncode == status, f"meltano {args} ended with {process.returncode}\n{out}\n{err}"
        return subprocess.CompletedProcess(args, process.returncode, out, err)


def meltanos() -> dict[str, pathlib.Path]:
    """Give the newest Meltano and the oldest that the add-on supports."""
    oldest = os.environ.get("CHSTATE_MELTANO37", "CHSTATE_MELTANO37-is-not-set")
    return {"newest": pathlib.Path(sys.executable).parent / "meltano", "3.7": pathlib.Path(oldest) / "meltano"}


def make_project(root: pathlib.Path, version: str, uri: str) -> Project:
    """Lay a project out."""
    meltano = meltanos()[version]
    assert meltano.is_file(), (
        f"{meltano} is not there: CHSTATE_MELTANO37 names the bin folder of a venv with Meltano 3.7"
    )
    root.mkdir()
    (root / "rows.txt").write_text("1\n2\n3\n")
    (root / "meltano.yml").write_text(
        f"""\
version: 1
project_id: 6d1f5f8e-0000-4000-8000-000000000000
default_environment: dev
environments:
- name: dev
plugins:
  extractors:
  - name: tap-rows
    namespace: tap_rows
    executable: {PLUGINS / "tap.py"}
    capabilities: [state]
    settings: [{{name: path, value: rows.txt}}, {{name: states, kind: integer, value: 0}}]
  loaders:
  - name: target-rows
    namespace: target_rows
    executable: {PLUGINS / "target.py"}
    settings: [{{name: path, value: out.txt}}]
""",
    )
    return Project(root, version, meltano, uri)


@pytest.fixture(params=["newest", "3.7"])
def project(request: pytest.FixtureRequest, tmp_path: pathlib.Path, uri: str) -> Project:
    """Give a project for each Meltano."""
    return make_project(tmp_path / "project", request.param, uri)


@pytest.fixture
def newest(tmp_path: pathlib.Path, uri: str) -> Project:
    """Give a project for the newest Meltano."""
    return make_project(tmp_path / "project", "newest", uri)


@pytest.fixture
def oldest(tmp_path: pathlib.Path, uri: str) -> Project:
    """Give a project for the oldest Meltano."""
    return make_project(tmp_path / "project", "3.7", uri)
