"""Cases from the field that need a server or a machine in trouble; docs/cases.md says what each one is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import typing as t

import front
import pytest
from meltano.core.state_store.base import MeltanoState, StateIDLockedError

from conftest import CASES, ROOT
from meltano_state_backend_clickhouse import errors
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager, connection_params_from_uri

if t.TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Iterator

    from clickhouse_connect.driver.client import Client

    from conftest import Project

    Make = Callable[..., ClickhouseStateStoreManager]

A = {"singer_state": {"bookmarks": {"s": {"id": 1}}}}
B = {"singer_state": {"bookmarks": {"s": {"id": 2}}}}


@pytest.fixture
def stub(server: str) -> Iterator[front.Running]:
    params = connection_params_from_uri(server)
    with front.running(f"{params['host']}:{params['port']}") as stub:
        yield stub


@pytest.fixture
def behind(make: Make, stub: front.Running) -> Make:
    """Give a maker of managers behind the stub."""

    def maker(**settings: t.Any) -> ClickhouseStateStoreManager:
        return make(host="127.0.0.1", port=stub.port, secure=False, **settings)

    return maker


def works(manager: ClickhouseStateStoreManager) -> None:
    manager.update(MeltanoState("a", None, A))
    manager.update(MeltanoState("a", B))
    assert manager.get("a") == MeltanoState("a", B, A)
    assert manager.get_state_ids() == ["a"]
    manager.clear("a")
    assert manager.get("a") is None


# --- Connections ----------------------------------------------------------------


def test_n02_a_service_that_wakes_up(behind: Make, stub: front.Running, caplog: pytest.LogCaptureFixture) -> None:
    def waking(request: front.Front) -> bool:
        time.sleep(1.5)
        return request.answer(503, [("Content-Type", "text/plain")], b"upstream unavailable")

    stub.on(front.times(2, waking))
    works(behind())
    assert caplog.text.count("waiting for ClickHouse") == 1


@pytest.mark.parametrize(("secure", "words"), [(True, ["does not speak TLS", "secure=false"])])
def test_n03_ports_mixed_up(make: Make, uri: str, *, secure: bool, words: list[str]) -> None:
    assert connection_params_from_uri("clickhouse://u:p@h:8443/d")["secure"] is True
    assert connection_params_from_uri("clickhouse://u:p@h:8443/d?secure=false")["secure"] is False
    with pytest.raises(errors.ConnectError) as caught:
        make(uri.replace("secure=true", "secure=false"), secure=secure, lock_wait_seconds="0.2").get("a")
    for word in words:
        assert word in caught.value.args[0]


def test_n05_a_readonly_user(behind: Make, stub: front.Running) -> None:
    behind().set(MeltanoState("a", None, A))
    stub.on(lambda request: bool(request.settings()) and request.code(164))
    manager = behind(lock_linger_seconds="0")
    assert manager.get("a") == MeltanoState("a", {}, A)
    assert manager.get_state_ids() == ["a"]
    for write in (manager.set, manager.update):
        with pytest.raises(errors.ServerError, match=r"164 READONLY.*readonly"):
            write(MeltanoState("a", None, B))
    stub.on(lambda _: False)


def test_n06_prepared_tables(behind: Make, stub: front.Running) -> None:
    """SELECT and INSERT are enough, ALTER DELETE is for clear, and no DDL is sent."""
    behind().migrate()
    allowed = {"SELECT", "INSERT", "DELETE"}
    stub.on(lambda request: request.word not in allowed and request.code(497))
    for never in ("auto", "never"):
        stub.take()
        works(behind(create_tables=never, lock_wait_seconds="9" if never == "never" else "10"))
        assert {text.split()[0] for text in stub.take()} <= allowed


def test_n07_create_is_refused(behind: Make, stub: front.Running) -> None:
    stub.on(lambda request: request.word == "CREATE" and request.code(497))
    with pytest.raises(errors.ServerError, match=r"497 ACCESS_DENIED.*GRANT.*init --print-sql"):
        behind().update(MeltanoState("a", None, A))


def test_n08_the_database_is_not_where_the_tables_lie() -> None:
    manager = ClickhouseStateStoreManager("clickhouse://u:p@h/analytics")
    assert manager.state_table == "`meltano`.`state`"


def script(code: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    prelude = (
        "import sys, logging\nlogging.basicConfig(level=logging.DEBUG)\n"
        "from meltano.core.state_store.base import MeltanoState\n"
        "from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager\n"
    )
    return subprocess.run(
        [sys.executable, "-c", prelude + code, *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
        timeout=100,
    )


def test_n10_a_proxy_of_the_environment(stub: front.Running, uri: str) -> None:
    code = """
m = ClickhouseStateStoreManager(sys.argv[1], host="clickhouse.invalid", port=8123, lock_wait_seconds="0.2")
print(m.get("a"))
"""
    proxy = {"HTTP_PROXY": f"http://127.0.0.1:{stub.port}", "http_proxy": "", "NO_PROXY": "", "no_proxy": ""}
    done = script(code, uri, **proxy)
    assert done.stdout == "None\n", done.stderr
    stub.on(lambda request: request.answer(502, [("Content-Type", "text/html")], b"<title>Bad Gateway</title>"))
    done = script(code, uri, **proxy)
    assert f"proxy http://127.0.0.1:{stub.port}" in done.stderr
    assert "NO_PROXY" in done.stderr
    stub.take()
    done = script(code, uri, **{**proxy, "NO_PROXY": "clickhouse.invalid"})
    assert '"clickhouse.invalid"' in done.stderr
    assert stub.take() == []


def test_n11_connections_that_idled(behind: Make, stub: front.Running, caplog: pytest.LogCaptureFixture) -> None:
    manager = behind(lock_linger_seconds="0")
    manager.set(MeltanoState("a", None, A))
    used: dict[object, float] = {}

    def idle(request: front.Front) -> bool:
        last = used.get(request.client_address)
        used[request.client_address] = time.monotonic()
        return last is not None and time.monotonic() - last > 0.2 and request.cut()

    stub.on(idle)
    for _ in range(3):
        time.sleep(0.4)
        manager.set(MeltanoState("a", None, A))
    assert "waiting" not in caplog.text


def test_n13_ipv6() -> None:
    assert connection_params_from_uri("clickhouse://u:p@[::1]:8123/d")["host"] in {"::1", "[::1]"}
    manager = ClickhouseStateStoreManager("clickhouse://u:p@h/d", host="::1", port=1, lock_wait_seconds="0.1")
    with pytest.raises(errors.ConnectError, match=r"\[::1\]:1"):
        manager.get("a")
    manager.close()


@pytest.mark.parametrize("code", [242, 225, 999, 252])
def test_n16_n17_failures_that_pass(behind: Make, stub: front.Running, code: int) -> None:
    manager = behind(lock_wait_seconds="1")
    manager.migrate()
    for _ in range(2):
        stub.on(front.times(2, lambda request: request.code(code)))
        works(manager)
    stub.on(lambda request: request.code(code))
    began = time.monotonic()
    with pytest.raises(errors.ClickhouseStateBackendError, match=rf"{code} {front.SAID[code][0]}"):
        manager.update(MeltanoState("a", None, A))
    assert time.monotonic() - began < 6
    stub.on(lambda _: False)


def test_c09_the_last_write_is_refused(behind: Make, stub: front.Running) -> None:
    manager = behind()
    manager.update(MeltanoState("a", None, A))
    stub.on(lambda request: request.word == "INSERT" and "`state` " in request.text and request.code(497))
    with pytest.raises(errors.ServerError, match=r"497 ACCESS_DENIED.*GRANT INSERT"):
        manager.update(MeltanoState("a", None, B))
    stub.on(lambda _: False)
    assert manager.get("a") == MeltanoState("a", {}, A)


# --- Tables ---------------------------------------------------------------------


def test_r08_an_unfinished_delete(behind: Make, stub: front.Running) -> None:
    def unfinished(request: front.Front) -> bool:
        if request.word != "DELETE":
            return False
        request.relay()
        return request.code(341)

    stub.on(unfinished)
    manager = behind()
    works(manager)
    manager.set(MeltanoState("b", None, A))
    assert manager.clear_all() == 1


def test_r01_r02_back_to_an_earlier_value(manager: ClickhouseStateStoreManager, client: Client) -> None:
    manager.migrate()
    client.command(f"ALTER TABLE {manager.state_table} MODIFY SETTING non_replicated_deduplication_window = 100")
    for value in (A, B, A):
        manager.update(MeltanoState("a", None, value))
        assert manager.get("a") == MeltanoState("a", {}, value)
    manager.clear("a")
    manager.update(MeltanoState("a", None, A))
    assert manager.get("a") == MeltanoState("a", {}, A)


def test_r04_a_row_of_the_future(manager: ClickhouseStateStoreManager, client: Client) -> None:
    manager.migrate()
    client.command(f"INSERT INTO {manager.state_table} VALUES ('a', NULL, '{{\"old\": 1}}', '2030-01-01 00:00:00.000')")
    for write in (manager.set, manager.update):
        for value in (A, B):
            write(MeltanoState("a", None, value))
            assert manager.get("a") == MeltanoState("a", {}, value)


OLDER_TABLE = (
    "CREATE TABLE {} (state_id String, partial_state Nullable(String), completed_state Nullable(String), "
    "updated_at DateTime64(3)) ENGINE = ReplacingMergeTree(updated_at)"
)


def test_r05_a_table_partitioned_by_month(make: Make, uri: str, schema: str, client: Client) -> None:
    manager = make(f"{uri}&ch_do_not_merge_across_partitions_select_final=1")
    client.command(f"CREATE DATABASE {schema}")
    client.command(f"{OLDER_TABLE.format(manager.state_table)} PARTITION BY toYYYYMM(updated_at) ORDER BY state_id")
    for month, value in ((1, A), (2, B)):
        client.command(
            f"INSERT INTO {manager.state_table} VALUES ('a', NULL, %(value)s, '2026-0{month}-05')",
            parameters={"value": json.dumps(value)},
        )
    assert manager.get("a") == MeltanoState("a", {}, B)
    assert manager.get_state_ids() == ["a"]
    manager.clear("a")
    works(manager)


def test_r10_a_projection(manager: ClickhouseStateStoreManager, client: Client) -> None:
    manager.migrate()
    client.command(f"ALTER TABLE {manager.state_table} MODIFY SETTING deduplicate_merge_projection_mode = 'drop'")
    client.command(f"ALTER TABLE {manager.state_table} ADD PROJECTION p (SELECT state_id, count() GROUP BY state_id)")
    for value in (A, B):
        manager.update(MeltanoState("a", None, value))
        assert manager.get("a") == MeltanoState("a", {}, value)
    try:
        manager.clear("a")
    except errors.ServerError as error:
        assert "projection" in str(error)  # noqa: PT017  either is right: it depends on the server
        assert manager.get("a") == MeltanoState("a", {}, B)
    else:
        assert manager.get("a") is None


def test_r11_async_inserts_that_nobody_waits_for(make: Make, uri: str) -> None:
    manager = make(f"{uri}&ch_async_insert=1&ch_wait_for_async_insert=0&ch_async_insert_busy_timeout_max_ms=5000")
    for value in (A, B, A):
        manager.update(MeltanoState("a", None, value))
        assert manager.get("a") == MeltanoState("a", {}, value)
    works(manager)


def test_r12_a_restored_backup(make: Make, client: Client) -> None:
    """A cleared state comes back, as it must; the lock of a process that ended long ago is in nobody's way."""
    manager = make(lock_timeout_seconds=2)
    manager.update(MeltanoState("a", None, A))
    tables = {name: f"{manager.schema}.backup_{i}" for i, name in enumerate((manager.state_table, manager.lock_table))}
    with manager.acquire_lock("a"):
        for table, backup in tables.items():
            client.command(f"CREATE TABLE {backup} ENGINE = MergeTree ORDER BY state_id AS SELECT * FROM {table}")
    manager.clear("a")
    manager.close()
    time.sleep(2.1)  # the backup is older than a lease
    for table, backup in tables.items():
        client.command(f"TRUNCATE TABLE {table}")
        client.command(f"INSERT INTO {table} SELECT * FROM {backup}")
    again = make(lock_wait_seconds=0, lock_timeout_seconds=2)
    assert again.get("a") == MeltanoState("a", {}, A)
    again.update(MeltanoState("a", None, B))
    assert again.get("a") == MeltanoState("a", {}, B)


# --- Locks ----------------------------------------------------------------------


def test_l04_processes_that_know_nothing_of_each_other(uri: str, manager: ClickhouseStateStoreManager) -> None:
    code = """
from meltano.core.state_store.base import MeltanoState
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager
import sys
m = ClickhouseStateStoreManager(sys.argv[1], lock_wait_seconds="90", lock_timeout_seconds="3")
for _ in range(12):
    with m.acquire_lock("sum"):
        now = m.get("sum")
        m.set(MeltanoState("sum", None, {"n": (now.completed_state["n"] if now else 0) + 1}))
m.close()
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, uri]) for _ in range(8)]
    try:
        assert [p.wait(timeout=110) for p in processes] == [0] * 8
    finally:
        for p in processes:
            p.kill()
            p.wait()
    assert manager.get("sum") == MeltanoState("sum", {}, {"n": 96})


def test_l08_time_zones(uri: str, monkeypatch: pytest.MonkeyPatch, make: Make) -> None:
    monkeypatch.setenv("TZ", "Pacific/Pago_Pago")
    elsewhere = f"{uri}&ch_session_timezone=Asia/Tokyo"
    holder, other = make(elsewhere), make(uri, lock_wait_seconds="1.5")
    with holder.acquire_lock("a"):
        with pytest.raises(StateIDLockedError, match=r"\([0-3]s ago\)"), other.acquire_lock("a"):
            pass
        holder.set(MeltanoState("a", None, A))
    assert other.get("a") == MeltanoState("a", {}, A)


# --- Commands of Meltano's ------------------------------------------------------


@pytest.mark.parametrize("name", ["completed_partial_shape.json", "utf16le_bom.json", "cp1250.json"])
def test_c04_c05_files_that_are_no_state(newest: Project, manager: ClickhouseStateStoreManager, name: str) -> None:
    """Meltano itself reads the file: what it refuses leaves the state as it was, and no lock."""
    manager.set(MeltanoState("a", None, A))
    newest.run("state", "set", "--force", "a", "--input-file", str(CASES / name), status=1)
    assert manager.get("a") == MeltanoState("a", {}, A)
    manager.update(MeltanoState("a", None, B))


# --- Secrets, TLS, names --------------------------------------------------------


CANARY = "cAnArY%#/x"


@pytest.mark.parametrize("how", ["uri", "setting", "file", "token"])
@pytest.mark.parametrize("where", ["wrong password", "nobody", "TLS", "raw"])
def test_secrets_are_in_no_traceback(server: str, tmp_path: pathlib.Path, how: str, where: str) -> None:
    params = connection_params_from_uri(server)
    address = f"{params['host']}:{1 if where == 'nobody' else params['port']}/d"
    if where == "TLS":
        address += "?secure=true"
    elif where == "raw":
        address += "?nonsense=1"
    (tmp_path / "password").write_text(CANARY)
    user = "u:cAnArY%25%23%2Fx" if how == "uri" else "u"
    ways: dict[str, dict[str, t.Any]] = {
        "uri": {},
        "setting": {"password": CANARY},
        "file": {"password_file": str(tmp_path / "password")},
        "token": {"access_token": CANARY, "secure": True},
    }
    code = """
import json
try:
    m = ClickhouseStateStoreManager(lock_wait_seconds="0.1", **json.loads(sys.argv[1]))
    m.get("a")
except Exception:
    logging.exception("failed")
m = ClickhouseStateStoreManager(lock_wait_seconds="0.1", **json.loads(sys.argv[1]))
m.update(MeltanoState("a", None, {"v": 1}))
"""
    done = script(code, json.dumps({"uri": f"clickhouse://{user}@{address}", **ways[how]}))
    assert done.returncode == 1
    assert done.stderr.count("Traceback") >= 2
    assert "cAnArY" not in done.stdout + done.stderr


def test_tls_with_a_private_authority(tmp_path: pathlib.Path) -> None:
    subprocess.run(["go", "run", "./internal/testca/write", tmp_path], cwd=ROOT, check=True)
    engines = {}
    command: list[str | pathlib.Path]
    try:
        for name, file in (("server", "server"), ("late", "late-expired")):
            command = [ROOT / "bin" / "chstate-engine", "serve", "--data", tmp_path / f"data-{name}"]
            command += ["--listen", "127.0.0.1:0", "--user", "etl", "--parent-pid", str(os.getpid())]
            command += ["--tls-cert", tmp_path / f"{file}.pem", "--tls-key", tmp_path / f"{file}-key.pem"]
            engine = subprocess.Popen(
                command, env={**os.environ, "CHSTATE_ENGINE_PASSWORD": CANARY}, stdout=subprocess.PIPE, text=True
            )
            assert engine.stdout is not None
            engines[name] = engine, engine.stdout.readline().split()[1].removeprefix("https://")
        ca = {"ca_cert": str(tmp_path / "ca.pem")}
        for name, settings, expected in (
            ("server", ca, ""),
            ("server", {"verify": "false"}, ""),
            ("server", {**ca, "server_host_name": "server"}, ""),
            ("late", {"verify": False}, ""),
            ("server", {}, "authority that is not trusted"),
            ("server", {**ca, "server_host_name": "other.test"}, "another name"),
            ("late", ca, "expired"),
        ):
            manager = ClickhouseStateStoreManager(
                f"clickhouse://etl@{engines[name][1]}/d?secure=true",
                password=CANARY,
                lock_wait_seconds="0.2",
                **settings,
            )
            if expected:
                with pytest.raises(errors.ConnectError, match=expected):
                    manager.get("a")
            else:
                works(manager)
            manager.close()
    finally:
        for engine, _ in engines.values():
            engine.terminate()
            engine.wait(30)


ODD = ["a`b", "a\"b'c", "a.b.c", "é🦆 x", "back\\slash", "a;DROP TABLE x;--", "?{x:String}", "%s {} $1"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names(make: Make, client: Client, schema: str, name: str) -> None:
    schema += name
    manager = make(schema=schema, table=name)
    works(manager)
    control = "".join(map(chr, (*range(32), *range(127, 160)))) + name
    manager.set(MeltanoState(control, None, {"id": control}))
    with manager.acquire_lock(control):
        assert manager.get(control) == MeltanoState(control, {}, {"id": control})
    assert manager.get_state_ids(f"*{name[-1]}") == [control]
    tables = client.query("SELECT count() FROM system.tables WHERE database = {d:String}", parameters={"d": schema})
    assert tables.result_rows == [(3,)]
    quoted = schema.replace("\\", "\\\\").replace("`", "\\`")
    client.command(f"DROP DATABASE `{quoted}` SYNC")
