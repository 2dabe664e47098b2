"""clickhouse-connect against the local engine, which these tests start themselves.

CHSTATE_ENGINE names the program; without it, bin/chstate-engine of this tree is used.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError
from clickhouse_connect.driver.external import ExternalData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickhouse_connect.driver.client import Client

PROGRAM = os.environ.get("CHSTATE_ENGINE") or str(Path(__file__).parents[2] / "bin" / "chstate-engine")

# lz4 and zstd are packages of their own; True takes whatever there is.
COMPRESSIONS = [True, False, "gzip"]
COMPRESSIONS += ["lz4"] if importlib.util.find_spec("lz4") else []
COMPRESSIONS += ["zstd"] if importlib.util.find_spec("zstandard") else []


@pytest.fixture(scope="session")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an engine on an empty folder."""
    command = [PROGRAM, "serve", "--data", str(tmp_path_factory.mktemp("data")), "--listen", "127.0.0.1:0"]
    engine = subprocess.Popen(
        [*command, "--user", "me", "--parent-pid", str(os.getpid())],
        env={**os.environ, "CHSTATE_ENGINE_PASSWORD": "secret"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert engine.stdout
    try:
        ready = engine.stdout.readline()
        assert ready.startswith("ready http://127.0.0.1:"), f"the engine did not start: {ready!r}"
        yield int(ready.split()[1].rsplit(":", 1)[1])
    finally:
        engine.terminate()
        assert engine.wait(timeout=10) == 0
        engine.stdout.close()


def connect(port: int, password: str = "secret", **options: Any) -> Client:
    return clickhouse_connect.get_client(host="127.0.0.1", port=port, username="me", password=password, **options)


@pytest.fixture(params=COMPRESSIONS, ids=lambda c: f"compress={c}")
def client(request: pytest.FixtureRequest, port: int) -> Iterator[Client]:
    with connect(port, compress=request.param) as c:
        yield c


@pytest.fixture
def table(client: Client) -> Iterator[str]:
    client.command(
        "CREATE TABLE py (id UInt32, text String, maybe Nullable(String), at DateTime64(3, 'UTC'),"
        " tags Array(LowCardinality(String))) ENGINE = MergeTree ORDER BY id"
    )
    yield "py"
    client.command("DROP TABLE py SYNC")


def test_server(client: Client) -> None:
    assert client.ping()
    assert client.server_version.count(".") == 3
    assert client.command("SELECT 1") == 1
    assert "system" in client.command("SHOW DATABASES")


def test_insert_and_query(client: Client, table: str) -> None:
    at = dt.datetime(2024, 7, 1, 12, 30, 0, 250000, tzinfo=dt.timezone.utc)
    rows = [
        (i, f"tab\t newline\n quote' zero\0 {i}", None if i % 2 else "yes", at, ["a", "b"][: i % 3])
        for i in range(5000)
    ]
    summary = client.insert(table, rows, column_names=["id", "text", "maybe", "at", "tags"])
    assert summary.written_rows == 5000
    found = client.query(f"SELECT id, text, maybe, at, tags FROM {table} ORDER BY id", tz_mode="aware").result_rows
    assert [tuple(row) for row in found] == rows


def test_parameters(client: Client) -> None:
    values = {"text": "tab\t newline\n quote' back\\slash", "n": 42, "list": ["a", "b'c"]}
    found = client.query("SELECT {text:String}, {n:UInt64}, {list:Array(String)}", parameters=values)
    assert found.first_row == tuple(values.values())


def test_types(client: Client) -> None:
    found = client.query(
        "SELECT toDateTime('2024-07-01 12:30:00', 'Europe/Berlin') AS d, map('a', 1) AS m, tuple(1, 'x') AS t,"
        " toDecimal64('1.25', 2) AS c, CAST('x' AS LowCardinality(Nullable(String))) AS l FROM numbers(3)"
    )
    assert found.row_count == 3
    day, mapping, pair, decimal, low = found.first_row
    assert day.utcoffset() == dt.timedelta(hours=2)
    assert (mapping, pair, str(decimal), low) == ({"a": 1}, (1, "x"), "1.25", "x")


def test_empty(client: Client) -> None:
    assert client.query("SELECT number FROM numbers(0)").result_rows == []


def test_streaming(client: Client) -> None:
    query = "SELECT number, toString(number) FROM numbers(300000)"
    sums = []
    with client.query_row_block_stream(query, settings={"max_block_size": 50000}) as stream:
        sums = [sum(row[0] for row in block) for block in stream]
    assert sum(sums) == 300000 * 299999 // 2
    assert len(sums) > 1


def test_raw(client: Client) -> None:
    assert client.raw_query("SELECT 1 AS a", fmt="JSONEachRow") == b'{"a":1}\n'
    client.command("CREATE TABLE IF NOT EXISTS raw (a UInt8) ENGINE = Memory")
    client.raw_insert("raw", column_names=["a"], insert_block=b'{"a": 7}\n', fmt="JSONEachRow")
    assert client.command("SELECT max(a) FROM raw") == 7


def test_settings_and_session(client: Client) -> None:
    found = client.query("SELECT getSetting('max_threads')", settings={"max_threads": 3})
    assert found.first_row == (3,)
    # The client keeps to one session, and so the temporary table.
    client.command("CREATE TEMPORARY TABLE mine (a UInt8)")
    client.command("INSERT INTO mine VALUES (1)")
    assert client.command("SELECT count() FROM mine") == 1


def test_external_data(client: Client) -> None:
    data = ExternalData(file_name="ids", fmt="CSV", types=["UInt32", "String"], data=b"1,a\n2,b\n")
    assert client.query("SELECT sum(_1), max(_2) FROM ids", external_data=data).first_row == (3, "b")


def test_errors(client: Client) -> None:
    with pytest.raises(DatabaseError, match=r"(?i)code: 60"):
        client.query("SELECT * FROM no_such_table")
    with pytest.raises(DatabaseError, match=r"(?i)code: 62"):
        client.command("SELEC 1")


def test_wrong_password(port: int) -> None:
    with pytest.raises(DatabaseError, match="516"):
        connect(port, password="wrong")
