"""Bad input gets a clear error that says what to do next, and leaves nothing behind."""

from __future__ import annotations

import socket
import typing as t

import front
import pytest
from meltano.core.error import MeltanoError
from meltano.core.state_store.base import (
    MeltanoState,
    MissingStateBackendSettingsError,
    UnsupportedStateBackendURIError,
)

from meltano_state_backend_clickhouse import errors
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickhouse_connect.driver.client import Client

    from conftest import Project

    Make = Callable[..., ClickhouseStateStoreManager]

A = {"singer_state": {"bookmarks": {"s": {"id": 1}}}}
SECRET = "sEcReT"


def calls(manager: ClickhouseStateStoreManager) -> list[Callable[[], object]]:
    """Give one call of each kind."""
    return [
        lambda: manager.get("a"),
        lambda: manager.set(MeltanoState("a", None, A)),
        lambda: manager.update(MeltanoState("a", None, A)),
        lambda: manager.clear("a"),
        manager.get_state_ids,
        lambda: list(manager.get_all()),
        lambda: manager.set_all([MeltanoState("a", None, A)]),
        manager.clear_all,
        manager.migrate,
    ]


def reasons(manager: ClickhouseStateStoreManager, kind: type[errors.ClickhouseStateBackendError]) -> list[str]:
    """Do each call, which fails, and give what Meltano would log: the first argument alone."""
    said = []
    for call in calls(manager):
        with pytest.raises(kind) as caught:
            call()
        reason = caught.value.args[0]
        assert isinstance(reason, str)
        assert "\n" not in reason
        assert SECRET not in reason
        assert caught.value.instruction is None
        said.append(reason)
    return said


@pytest.mark.parametrize(
    ("uri", "settings", "kind", "words"),
    [
        ("postgresql://u:sEcReT@h/d", {}, UnsupportedStateBackendURIError, ["postgresql", "clickhouse://"]),
        ("clickhouse://u:sEcReT@h/d?tabel=x", {}, errors.InvalidURIError, ["tabel", "table"]),
        ("clickhouse://u:sE#cReT@h/d", {}, errors.InvalidURIError, ["%23"]),
        ("clickhouse://h/d", {}, MissingStateBackendSettingsError, ["user", "STATE_BACKEND_CLICKHOUSE_USER"]),
        ("clickhouse://u:sEcReT@h", {}, MissingStateBackendSettingsError, ["database"]),
        ("clickhouse://u:sEcReT@h/d", {"port": "abc"}, errors.InvalidSettingsError, ["port", "abc", "65535"]),
        ("clickhouse://u:sEcReT@h/d", {"port": 0}, errors.InvalidSettingsError, ["port", "65535"]),
        ("clickhouse://u:sEcReT@h/d", {"verify": "ture"}, errors.InvalidSettingsError, ["verify", "ture"]),
        ("clickhouse://u:sEcReT@h/d", {"lock_wait_seconds": "-1"}, errors.InvalidSettingsError, ["lock_wait_seconds"]),
        ("clickhouse://u:sEcReT@h/d", {"password_file": "/none"}, errors.InvalidSettingsError, ["/none"]),
        *(
            ("clickhouse://u:sEcReT@h/d", {name: value}, errors.InvalidSettingsError, [name, "such as"])
            for name in ("lock_timeout_seconds", "lock_retry_seconds")
            for value in ("abc", 0, -1, "1.5")
        ),
    ],
)
def test_l02_settings_are_refused_by_the_constructor(
    uri: str, settings: dict[str, t.Any], kind: type[Exception], words: list[str]
) -> None:
    """L02 and the like."""
    with pytest.raises(kind) as caught:
        ClickhouseStateStoreManager(uri, **settings)
    assert isinstance(caught.value, MeltanoError)
    for word in words:
        assert word in caught.value.args[0]
    assert SECRET not in str(caught.value)
    assert not str(caught.value).endswith("..")


def test_l02_lock_settings_may_be_texts(make: Make) -> None:
    """L02: from the environment they arrive as texts, or as Meltano made them of them."""
    manager = make(lock_timeout_seconds="10", lock_retry_seconds=1, lock_wait_seconds="2.5", lock_linger_seconds="0")
    manager.update(MeltanoState("a", None, A))
    assert manager.get("a") == MeltanoState("a", {}, A)


def test_a_wrong_password(server: str, make: Make) -> None:
    for reason in reasons(make(server, password=SECRET), errors.ConnectError):
        assert "516" in reason
        assert "password" in reason.lower()


def test_an_unreachable_host(make: Make) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    manager = make(f"clickhouse://u:{SECRET}@127.0.0.1/d", port=port, lock_wait_seconds="0.2")
    for reason in reasons(manager, errors.ConnectError):
        assert f"127.0.0.1:{port}" in reason
        assert "refused" in reason


def test_a_host_that_is_none(make: Make) -> None:
    manager = make(f"clickhouse://u:{SECRET}@no-such-host.invalid/d", lock_wait_seconds="0.2")
    with pytest.raises(errors.ConnectError, match=r"no-such-host\.invalid"):
        manager.get("a")


@pytest.fixture
def old_server(client: Client, manager: ClickhouseStateStoreManager) -> Iterator[int]:
    """Give the real server, but for its version, which it tells to be an old one."""
    params = manager.conn_params
    version = str(client.command("SELECT version()"))

    def aged(request: front.Front) -> bool:
        status, headers, data = request.relay()
        old = "22.8.1.1".ljust(len(version), "1")[: len(version)]
        return request.answer(status, headers, data.replace(version.encode(), old.encode()))

    with front.running(f"{params['host']}:{params['port']}") as stub:
        stub.on(aged)
        yield stub.port


def test_a_server_that_is_too_old(make: Make, old_server: int, client: Client, schema: str) -> None:
    for reason in reasons(make(host="127.0.0.1", port=old_server, secure=False), errors.ServerError):
        assert "22.8" in reason
        assert "23.8" in reason
    assert client.command(f"EXISTS DATABASE {schema}") == 0


@pytest.mark.parametrize("table", ["state", "state_lock"])
def test_a_table_with_the_wrong_columns(
    manager: ClickhouseStateStoreManager, client: Client, schema: str, table: str
) -> None:
    client.command(f"CREATE DATABASE {schema}")
    client.command(f"CREATE TABLE {schema}.{table} (id UInt64, text String) ENGINE = MergeTree ORDER BY id")
    said = []
    for call in calls(manager)[1:3]:
        with pytest.raises(errors.ServerError) as caught:
            call()
        said.append(caught.value.args[0])
    for reason in said:
        assert f"{schema}.{table}" in reason.replace("`", "")
    assert client.command(f"SELECT count() FROM {schema}.{table}") == 0


# --- The same through Meltano's own commands ------------------------------------


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("clickhouse://u:sEcReT@h/d?tabel=x", ["tabel", "perhaps table is meant"]),
        ("clickhouse://h/d", ["state_backend.clickhouse.user is required"]),
    ],
)
def test_bad_settings_in_meltano(project: Project, uri: str, words: list[str]) -> None:
    done = project.run("state", "list", status=1, MELTANO_STATE_BACKEND_URI=uri)
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr


def test_a_wrong_password_in_meltano(project: Project) -> None:
    for args in (["state", "list"], ["run", "tap-rows", "target-rows"]):
        done = project.run(*args, status=1, MELTANO_STATE_BACKEND_CLICKHOUSE_PASSWORD=SECRET)
        assert "516" in done.stderr
        assert SECRET not in done.stderr
    assert not (project.root / "out.txt").exists()


def test_c01_c03_invalid_json_in_meltano(project: Project, make: Make) -> None:
    """C01, C03: nothing is written, and no lock is left."""
    manager = make()
    manager.set(MeltanoState("a", None, A))
    project.run("state", "set", "--force", "a", '{"singer_state": ', status=1)
    project.run("state", "set", "--force", "a", '{"bookmarks": {}}', status=1)
    assert manager.get("a") == MeltanoState("a", {}, A)
    assert manager.client.command(f"SELECT count() FROM {manager.lock_table}") == 0
