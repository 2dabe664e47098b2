"""The public interface, as the original documented it and as Meltano's own store tests want it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import typing as t
from importlib.metadata import entry_points

import pytest
from meltano.core.setting_definition import SettingDefinition, SettingKind
from meltano.core.state_store import StateBackend
from meltano.core.state_store.base import MeltanoState, MissingStateBackendSettingsError, StateStoreManager

import meltano_state_backend_clickhouse
from conftest import CASES
from meltano_state_backend_clickhouse import backend, errors, settings
from meltano_state_backend_clickhouse.backend import ClickhouseStateStoreManager, connection_params_from_uri

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickhouse_connect.driver.client import Client

A = {"singer_state": {"bookmarks": {"s": {"id": 1}}}}
B = {"singer_state": {"bookmarks": {"s": {"id": 2}}}}


def state(state_id: str, partial: t.Any = None, completed: t.Any = None) -> MeltanoState:
    return MeltanoState(state_id=state_id, partial_state=partial, completed_state=completed)


# --- What the original documented ---------------------------------------------


def test_verify_the_installation(manager: ClickhouseStateStoreManager) -> None:
    """The guide's check: a state that is set comes back, and the newest of two."""
    manager.set(state("dev:tap-to-target", {}, {"v": 1}))
    assert manager.get("dev:tap-to-target") == state("dev:tap-to-target", {}, {"v": 1})
    manager.set(state("dev:tap-to-target", {}, {"v": 2}))
    assert manager.get("dev:tap-to-target") == state("dev:tap-to-target", {}, {"v": 2})


def test_the_tables_are_the_documented_ones(manager: ClickhouseStateStoreManager, client: Client) -> None:
    manager.set(state("a", None, A))
    columns = client.query(
        "SELECT name, type FROM system.columns WHERE database = {d:String} AND table = 'state' ORDER BY position",
        parameters={"d": manager.schema},
    ).result_rows
    assert columns == [
        ("state_id", "String"),
        ("partial_state", "Nullable(String)"),
        ("completed_state", "Nullable(String)"),
        ("updated_at", "DateTime64(3)"),
    ]
    row = client.query(f"SELECT state_id, partial_state, completed_state FROM {manager.state_table} FINAL").result_rows
    assert row == [("a", None, json.dumps(A))]
    assert client.command(f"EXISTS TABLE {manager.lock_table}") == 1


def test_rows_of_the_original_are_read(manager: ClickhouseStateStoreManager, client: Client) -> None:
    manager._ensure_tables()
    for version in (1, 2):
        client.insert(
            manager.state_table,
            [["a", None, json.dumps({"v": version})]],
            column_names=["state_id", "partial_state", "completed_state"],
        )
    assert manager.get("a") == state("a", {}, {"v": 2})


def test_interface_of_the_original(manager: ClickhouseStateStoreManager, uri: str, schema: str) -> None:
    assert meltano_state_backend_clickhouse.ClickhouseStateStoreManager is ClickhouseStateStoreManager
    assert manager.label == "ClickHouse"
    assert manager.uri == uri
    assert manager.conn_params == connection_params_from_uri(uri)
    assert (manager.schema, manager.table) == (schema, "state")
    assert (manager.state_table, manager.lock_table) == (f"`{schema}`.`state`", f"`{schema}`.`state_lock`")
    assert manager.client.command("SELECT 1") == 1
    assert (backend.LOCK_TIMEOUT_SECONDS, backend.STALE_LOCK_SECONDS, backend.LOCK_SETTLE_SECONDS) == (30, 300, 1.0)
    assert (backend.DEFAULT_PORT, backend.DEFAULT_HOST) == (8123, "localhost")
    assert (backend.DEFAULT_SCHEMA_NAME, backend.DEFAULT_TABLE_NAME) == ("meltano", "state")
    assert isinstance(manager, StateStoreManager)
    with pytest.raises(AttributeError):
        _ = meltano_state_backend_clickhouse.nothing


def test_the_client_may_be_replaced_and_is_optional(
    manager: ClickhouseStateStoreManager,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "clickhouse_connect", None)
    with pytest.raises(errors.ClickhouseStateBackendError, match="pip install clickhouse-connect"):
        _ = manager.client

    class Fake:
        closed = False

        def close(self) -> None:
            self.closed = True

    fake = Fake()
    manager.client = t.cast("t.Any", fake)
    assert manager.client is t.cast("t.Any", fake)
    manager.close()
    assert fake.closed


def test_connection_params() -> None:
    params = connection_params_from_uri("clickhouse://u:p@h:9000/db", secure=True)
    assert params == {"host": "h", "port": 9000, "username": "u", "password": "p", "database": "db", "secure": True}
    with pytest.raises(MissingStateBackendSettingsError):
        connection_params_from_uri("clickhouse://h/db")
    with pytest.raises(MissingStateBackendSettingsError):
        connection_params_from_uri("clickhouse://u:p@h")


def test_settings_go_before_the_uri() -> None:
    manager = ClickhouseStateStoreManager(
        "clickhouse://u:p@h:8123/db?table=t&schema=s",
        host="other",
        port=9000,
        database="db2",
        user="u2",
        password="p2",
        secure=False,
        schema="s2",
        table="t`2",
    )
    expected = {"host": "other", "port": 9000, "username": "u2", "password": "p2", "database": "db2", "secure": False}
    assert manager.conn_params == expected
    assert manager.state_table == "`s2`.`t\\`2`"


def test_every_setting_is_an_entry_point() -> None:
    points = entry_points(group="meltano.settings")
    ours = [p.load() for p in points if p.value.startswith("meltano_state_backend_clickhouse")]
    assert sorted(s.name for s in ours) == sorted(s.name for s in settings.SETTINGS)
    for setting in settings.SETTINGS:
        assert isinstance(setting, SettingDefinition)
        name = setting.name.rpartition(".")[2]
        assert setting.name == f"state_backend.clickhouse.{name}"
        assert setting.value is None  # a value would go before the URI's
        assert [v.key for v in setting.env_vars(["meltano"])] == [f"MELTANO_STATE_BACKEND_CLICKHOUSE_{name.upper()}"]
        assert getattr(backend, f"CLICKHOUSE_{name.upper()}") is setting
        assert bool(setting.sensitive) == (name in {"password", "access_token"})
    kinds = {s.name.rpartition(".")[2]: s.kind for s in settings.SETTINGS}
    assert kinds["port"] is SettingKind.INTEGER
    assert kinds["secure"] is SettingKind.BOOLEAN
    assert kinds["host"] is SettingKind.STRING


def test_the_scheme_leads_to_the_manager() -> None:
    assert "clickhouse" in StateBackend.backends()
    assert StateBackend.get_manager_factory(scheme="clickhouse") is ClickhouseStateStoreManager


def test_the_lock_round_trip(manager: ClickhouseStateStoreManager) -> None:
    with manager.acquire_lock("dev:lock", retry_seconds=1):
        pass
    with manager.acquire_lock("dev:lock"):
        pass
    manager.update(state("dev:lock", {}, {"v": 9}))
    assert manager.get("dev:lock") == state("dev:lock", {}, {"v": 9})


def test_ids_and_patterns(manager: ClickhouseStateStoreManager) -> None:
    for state_id in ("dev:a", "prod:b", "dev:c"):
        manager.set(state(state_id, None, A))
    assert manager.get_state_ids() == ["dev:a", "dev:c", "prod:b"]
    assert manager.get_state_ids("*") == ["dev:a", "dev:c", "prod:b"]
    assert manager.get_state_ids(pattern="dev:*") == ["dev:a", "dev:c"]
    assert manager.get_state_ids("nothing*") == []


def test_delete_and_clear_all(manager: ClickhouseStateStoreManager) -> None:
    manager.set(state("dev:a", None, A))
    manager.delete("dev:a")
    assert manager.get("dev:a") is None
    manager.delete("dev:a")  # none there is no error
    manager.set(state("dev:b", None, A))
    manager.set(state("dev:b", None, B))
    assert manager.clear_all() == 1
    assert manager.get_state_ids("*") == []
    assert manager.clear_all() == 0


# --- What Meltano's own store tests want --------------------------------------


@pytest.mark.parametrize(
    ("partial", "completed"),
    [(None, None), ({}, {}), (A, None), (A, {}), (None, A), ({}, A), (A, B)],
)
def test_halves(manager: ClickhouseStateStoreManager, partial: t.Any, completed: t.Any) -> None:
    """Whatever is stored is there, and an empty half reads as an empty object."""
    manager.set(state("a", partial, completed))
    assert manager.get(state_id="a") == state("a", partial or {}, completed or {})
    assert manager.get_state_ids() == ["a"]


def test_update_follows_meltanos_rule(manager: ClickhouseStateStoreManager) -> None:
    manager.update(state("a", {"singer_state": {"x": 1}}))
    assert manager.get("a") == state("a", {"singer_state": {"x": 1}}, {})
    manager.update(state("a", {"singer_state": {"y": 2}}))
    assert manager.get("a") == state("a", {"singer_state": {"x": 1, "y": 2}}, {})
    manager.update(state("a", {}, A))  # complete: replaces both
    assert manager.get("a") == state("a", {}, A)
    manager.update(state("a", {"singer_state": {"x": 3}}))  # partial: keeps the completed half
    assert manager.get("a") == state("a", {"singer_state": {"x": 3}}, A)
    manager.clear("a")
    assert manager.get("a") is None


def test_get_all_and_set_all(manager: ClickhouseStateStoreManager) -> None:
    assert list(manager.get_all()) == []
    assert manager.set_all([]) == 0
    states = [state(f"job-{i}", {}, {"singer_state": {"v": i}}) for i in range(3)]
    assert manager.set_all(iter(states)) == 3
    assert list(manager.get_all()) == states
    assert [s.state_id for s in manager.get_all(pattern="*-[12]")] == ["job-1", "job-2"]


def test_set_all_writes_nothing_when_an_entry_is_bad(manager: ClickhouseStateStoreManager) -> None:
    def entries() -> Iterator[MeltanoState]:
        yield state("good", None, A)
        raise KeyError("broken")

    with pytest.raises(errors.ClickhouseStateBackendError, match=r"entry 2 .*broken.*nothing was written"):
        manager.set_all(entries())
    with pytest.raises(errors.InvalidStateError, match='"bad": its completed half is a list'):
        manager.set_all([state("good", None, A), state("bad", None, [1])])
    assert manager.get_state_ids() == []


def test_migrate_and_close(make: Callable[..., ClickhouseStateStoreManager]) -> None:
    with make() as manager:
        manager.migrate()
        manager.set(state("a", None, A))
    manager.close()
    assert manager.get("a") == state("a", {}, A)  # a call after the end starts anew


def test_the_older_plugins_lock_table_is_replaced(manager: ClickhouseStateStoreManager, client: Client) -> None:
    client.command(f"CREATE DATABASE {manager.schema}")
    client.command(
        f"CREATE TABLE {manager.lock_table} (state_id String, lock_id String, locked_at DateTime DEFAULT now()) "
        "ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id TTL locked_at + INTERVAL 300 SECOND",
    )
    manager.migrate()
    columns = client.query(f"DESCRIBE TABLE {manager.lock_table}").result_rows
    assert "expires_at" in [column[0] for column in columns]
    manager.update(state("a", None, A))


# --- Cases from the field ------------------------------------------------------


def case(name: str) -> t.Any:
    return json.loads((CASES / name).read_text())


@pytest.mark.parametrize(
    "name",
    ["pg_log_based", "id_keys_and_scalars", "big_ints", "floats", "nulls", "file_path_keys"],
)
def test_s03_s04_s05_s06_s08_s12_payloads(manager: ClickhouseStateStoreManager, name: str) -> None:
    """S03, S04, S05, S06, S08, S12: nothing is rounded, dropped or reordered."""
    value = case(f"{name}.json")
    for half in ("partial_state", "completed_state"):
        manager.set(MeltanoState(**{"state_id": "a", half: value}))
        got = manager.get("a")
        assert got is not None
        assert json.dumps(getattr(got, half)) == json.dumps(value)


def test_nan_and_odd_texts(manager: ClickhouseStateStoreManager) -> None:
    value = {"nan": float("inf"), "half a pair": "\ud800", "nul": "\0", "tab\t\n\\": "é😀"}
    manager.set(state("a", None, value))
    assert manager.get("a") == state("a", {}, value)


def test_s09_an_empty_object_keeps_what_is_there(manager: ClickhouseStateStoreManager) -> None:
    """S09: an empty final STATE is complete to Meltano; no state at all is partial."""
    manager.update(state("a", None, A))
    manager.update(state("a", {}, {}))
    assert manager.get("a") == state("a", {}, A)
    manager.update(state("a", {}, {"singer_state": {}}))
    assert manager.get("a") == state("a", {}, {"singer_state": {}})


def test_s10_a_double_encoded_cell(manager: ClickhouseStateStoreManager, client: Client) -> None:
    """S10: named, and left as it is."""
    manager._ensure_tables()
    rows = [["bad", None, '"{\\"singer_state\\": {}}"'], ["good", None, json.dumps(A)]]
    client.insert(manager.state_table, rows, column_names=["state_id", "partial_state", "completed_state"])
    with pytest.raises(errors.InvalidStateError, match=r'"bad".*string'):
        manager.get("bad")
    with pytest.raises(errors.InvalidStateError, match=r'"bad".*string'):
        list(manager.get_all())
    manager.set(state("bad", None, A))
    assert manager.get("bad") == state("bad", {}, A)


def test_s13_halves_that_do_not_fit_together(manager: ClickhouseStateStoreManager) -> None:
    """S13: the same kind of failure as Meltano's own, but named; the row is kept."""
    stored = state("a", case("dict_partial_over_scalar.json"), case("scalar_completed.json"))
    manager.set(stored)
    got = manager.get("a")
    assert got is not None
    assert got.to_dict() == stored.to_dict()
    with pytest.raises(TypeError, match='state "a"') as caught:
        got.json_merged()
    assert isinstance(caught.value, errors.StateMergeError)

    manager.set(state("b", {"bookmarks": {"s": "2020-01-01"}}))
    with pytest.raises(errors.StateMergeError, match=r'state "b".*"bookmarks\.s"'):
        manager.update(state("b", {"bookmarks": {"s": {"since": "2021-01-01"}}}))
    assert manager.get("b") == state("b", {"bookmarks": {"s": "2020-01-01"}}, {})


def test_s14_partial_state_alone(manager: ClickhouseStateStoreManager, client: Client) -> None:
    """S14: a run that was interrupted before it ever finished."""
    manager.update(state("a", A))
    got = manager.get("a")
    assert got is not None
    assert json.loads(got.json_merged()) == A
    client.insert(manager.state_table, [["b"]], column_names=["state_id"])
    assert manager.get("b") == state("b", {}, {})


def test_s15_merged_like_the_sdk_wants(manager: ClickhouseStateStoreManager) -> None:
    """S15."""
    manager.update(state("a", None, case("sdk_partitions_completed.json")))
    manager.update(state("a", case("sdk_partitions_partial.json")))
    got = manager.get("a")
    assert got is not None
    assert json.loads(got.json_merged()) == case("sdk_partitions_merged_expected.json")


def test_i01_i02_i03_i05_odd_ids(manager: ClickhouseStateStoreManager) -> None:
    """I01, I02, I03: each id is its own, and a pattern means what fnmatch means."""
    ids = [*filter(None, case("state_ids.json")), "ends-with-\\"]
    manager.set_all(state(i, None, {"id": i}) for i in ids)
    assert sorted(manager.get_state_ids()) == sorted(set(ids))
    for state_id in ids:
        assert manager.get(state_id) == state(state_id, {}, {"id": state_id})
    for pattern, expected in case("patterns_expected.json"):
        assert sorted(manager.get_state_ids(pattern)) == sorted(expected), pattern
    manager.update(state(ids[0], None, A))
    manager.clear(ids[0])
    assert manager.get(ids[0]) is None


@pytest.mark.parametrize("state_id", ["", "\ud800", None])
def test_ids_that_cannot_be(
    manager: ClickhouseStateStoreManager,
    state_id: t.Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: manager.get(state_id),
        lambda: manager.set(state(state_id, None, A)),
        lambda: manager.update(state(state_id, None, A)),
        lambda: manager.clear(state_id),
    ]
    for call in calls:
        with pytest.raises(errors.InvalidStateError, match="state id"):
            call()
    assert caplog.text.encode()  # any log file can take it


@pytest.mark.parametrize("value", [[1], "text", 7])
def test_halves_that_are_no_objects(manager: ClickhouseStateStoreManager, value: t.Any) -> None:
    with pytest.raises(errors.InvalidStateError, match=r'state "a".*nothing was written'):
        manager.set(state("a", None, value))
    with pytest.raises(errors.InvalidStateError, match=r'state "a".*partial'):
        manager.set(state("a", {"when": object()}))
    assert manager.get("a") is None


def test_s01_n15_a_large_state(manager: ClickhouseStateStoreManager) -> None:
    """S01, N15: 100,000 partitions, 14 MB."""
    partitions = [
        {"context": {"account_id": f"{i:09}", "region": "eu-central-1"}, "replication_key_value": f"2024-01-01T{i}"}
        for i in range(100_000)
    ]
    value = {"singer_state": {"bookmarks": {"events": {"partitions": partitions}}}}
    manager.update(state("big", None, value))
    assert manager.get("big") == state("big", {}, value)
    manager.update(state("big", {"singer_state": {"bookmarks": {"other": {"id": 1}}}}))
    (got,) = manager.get_all()
    assert json.loads(got.json_merged())["singer_state"]["bookmarks"]["other"] == {"id": 1}


# --- Listing --------------------------------------------------------------------


def queries(manager: ClickhouseStateStoreManager, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the requests that a manager sends."""
    sent: list[str] = []
    helper = manager._use.helper()
    ask = helper._ask

    def noting(request: int, op: str, **fields: t.Any) -> None:
        sent.append(op)
        ask(request, op, **fields)

    monkeypatch.setattr(helper, "_ask", noting)
    return sent


def test_c10_a_list_takes_two_queries(manager: ClickhouseStateStoreManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """C10: `meltano state list` asks for the ids, then for each state."""
    manager.set_all(state(f"s{i:04}", None, {"v": i}) for i in range(5000))
    sent = queries(manager, monkeypatch)
    ids = manager.get_state_ids()
    assert [(s.state_id, s.completed_state) for s in map(manager.get, ids) if s] == [
        (f"s{i:04}", {"v": i}) for i in range(5000)
    ]
    assert sent == ["ids", "all"]


def test_a_state_read_ahead_is_given_once_and_only_until_a_write(
    manager: ClickhouseStateStoreManager,
    make: Callable[..., ClickhouseStateStoreManager],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager.set_all(state(i, None, {"v": 1}) for i in "abcd")
    other = make(lock_linger_seconds=0)
    sent = queries(manager, monkeypatch)
    assert manager.get_state_ids() == ["a", "b", "c", "d"]
    assert manager.get("a") == state("a", {}, {"v": 1})
    other.set(state("a", None, {"v": 2}))
    assert manager.get("a") == state("a", {}, {"v": 2})  # asked for again: what is there now
    manager.set(state("b", None, {"v": 3}))
    assert manager.get("b") == state("b", {}, {"v": 3})
    assert sent == ["ids", "all", "get", "set", "get"]

    del sent[:]
    assert manager.get_state_ids() == ["a", "b", "c", "d"]
    assert manager.get("c") == state("c", {}, {"v": 1})  # not from the beginning: no list
    assert manager.get("a") == state("a", {}, {"v": 2})
    assert sent == ["ids", "get", "get"]

    assert manager.get_state_ids() == ["a", "b", "c", "d"]
    assert manager.get("a") == state("a", {}, {"v": 2})
    with manager.acquire_lock("b"):
        other.set(state("c", None, {"v": 4}))
        assert manager.get("c") == state("c", {}, {"v": 4})
    other.delete("d")
    manager.get_state_ids()
    assert [manager.get(i) for i in ("a", "b", "bb", "d")] == [
        state("a", {}, {"v": 2}),
        state("b", {}, {"v": 3}),
        None,
        None,
    ]


def test_a_state_read_ahead_grows_old(
    manager: ClickhouseStateStoreManager,
    make: Callable[..., ClickhouseStateStoreManager],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager.set_all(state(i, None, {"v": 1}) for i in "ab")
    manager.get_state_ids()
    assert manager.get("a") == state("a", {}, {"v": 1})
    make(table="state", lock_linger_seconds=0).set(state("b", None, {"v": 2}))
    readahead = importlib.import_module("meltano_state_backend_clickhouse.readahead")
    monkeypatch.setattr(readahead, "IDLE_SECONDS", -1)
    assert manager.get("b") == state("b", {}, {"v": 2})


def test_imports_are_lean() -> None:
    """The settings are loaded by every Meltano command: they must not load the rest."""
    code = (
        "import sys, meltano_state_backend_clickhouse.settings\n"
        "assert not [m for m in sys.modules if m.endswith(('clickhouse.backend', 'clickhouse_connect'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
