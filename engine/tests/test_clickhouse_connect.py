"""clickhouse-connect against the local engine, which these tests start themselves.

CHSTATE_ENGINE names the program; without it, bin/chstate-engine of this tree is used.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import subprocess
from pathlib import Path

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

PROGRAM = os.environ.get("CHSTATE_ENGINE") or str(Path(__file__).parents[2] / "bin" / "chstate-engine")


@pytest.fixture(scope="session")
def port(tmp_path_factory):
    """The port of an engine on an empty folder."""
    data = tmp_path_factory.mktemp("data")
    engine = subprocess.Popen(
        [
            PROGRAM,
            "serve",
            "--data",
            str(data),
            "--listen",
            "127.0.0.1:0",
            "--user",
            "me",
            "--parent-pid",
            str(os.getpid()),
        ],
        env={**os.environ, "CHSTATE_ENGINE_PASSWORD": "secret"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        ready = engine.stdout.readline()
        assert ready.startswith("ready http://127.0.0.1:"), f"the engine did not start: {ready!r}"
        yield int(ready.split()[1].rsplit(":", 1)[1])
    finally:
        engine.terminate()
        assert engine.wait(timeout=10) == 0


def connect(port, **options):
    return clickhouse_connect.get_client(host="127.0.0.1", port=port, username="me", password="secret", **options)


# lz4 and zstd are separate packages; True takes whatever there is.
COMPRESSIONS = [True, False, "gzip", "deflate"]
COMPRESSIONS += ["lz4"] if importlib.util.find_spec("lz4") else []
COMPRESSIONS += ["zstd"] if importlib.util.find_spec("zstandard") else []


@pytest.fixture(params=COMPRESSIONS, ids=lambda c: f"compress={c}")
def client(request, port):
    with connect(port, compress=request.param) as c:
        yield c


@pytest.fixture
def table(client):
    client.command("DROP TABLE IF EXISTS py SYNC")
    client.command(
        "CREATE TABLE py (id UInt32, text String, maybe Nullable(String), at DateTime64(3, 'UTC'), tags Array(LowCardinality(String))) ENGINE = MergeTree ORDER BY id"
    )
    yield "py"
    client.command("DROP TABLE py SYNC")


def test_server(client):
    assert client.ping()
    assert client.server_version.count(".") == 3
    assert client.command("SELECT 1") == 1
    assert client.command("SHOW DATABASES").count("system") == 1


def test_insert_and_query(client, table):
    at = dt.datetime(2024, 7, 1, 12, 30, 0, 250000, tzinfo=dt.timezone.utc)
    rows = [
        (i, f"tab\t newline\n quote' zero\0 {i}", None if i % 2 else "yes", at, ["a", "b"][: i % 3])
        for i in range(5000)
    ]
    summary = client.insert(table, rows, column_names=["id", "text", "maybe", "at", "tags"])
    assert summary.written_rows == 5000
    result = client.query(f"SELECT id, text, maybe, at, tags FROM {table} ORDER BY id")
    assert [(*r[:3], r[3].replace(tzinfo=dt.timezone.utc), r[4]) for r in result.result_rows] == rows


def test_parameters(client):
    text = "tab\t newline\n quote' back\\slash"
    result = client.query(
        "SELECT {text:String} AS t, {n:UInt64} AS n, {list:Array(String)} AS l",
        parameters={"text": text, "n": 42, "list": ["a", "b'c"]},
    )
    assert result.first_row == (text, 42, ["a", "b'c"])


def test_types(client):
    result = client.query(
        "SELECT toDateTime('2024-07-01 12:30:00', 'Europe/Berlin') AS d, map('a', 1) AS m, tuple(1, 'x') AS t, toDecimal64('1.25', 2) AS c, CAST('x' AS LowCardinality(Nullable(String))) AS l, generateUUIDv4() AS u FROM numbers(3)"
    )
    assert result.row_count == 3
    day, mapping, pair, decimal, low, _ = result.first_row
    assert day.utcoffset() == dt.timedelta(hours=2)
    assert (mapping, pair, str(decimal), low) == ({"a": 1}, (1, "x"), "1.25", "x")


def test_empty(client):
    assert client.query("SELECT number FROM numbers(0)").result_rows == []


def test_streaming(client):
    total = blocks = 0
    with client.query_row_block_stream(
        "SELECT number, toString(number) FROM numbers(300000)", settings={"max_block_size": 50000}
    ) as stream:
        for block in stream:
            blocks += 1
            total += sum(row[0] for row in block)
    assert total == 300000 * 299999 // 2
    assert blocks > 1


def test_raw(client):
    assert client.raw_query("SELECT 1 AS a", fmt="JSONEachRow") == b'{"a":1}\n'
    client.command("CREATE TABLE IF NOT EXISTS raw (a UInt8) ENGINE = Memory")
    client.raw_insert("raw", column_names=["a"], insert_block=b'{"a": 7}\n', fmt="JSONEachRow")
    assert client.command("SELECT max(a) FROM raw") == 7


def test_settings(client):
    assert client.query("SELECT getSetting('max_threads')", settings={"max_threads": 3}).first_row == (3,)
    client.command("CREATE TEMPORARY TABLE mine (a UInt8)")  # the client's session keeps it
    client.command("INSERT INTO mine VALUES (1)")
    assert client.command("SELECT count() FROM mine") == 1
    client.command("DROP TEMPORARY TABLE mine")


def test_errors(client):
    with pytest.raises(DatabaseError, match=r"code: 60|Code: 60"):
        client.query("SELECT * FROM no_such_table")
    with pytest.raises(DatabaseError, match=r"(code|Code): 62"):
        client.command("SELEC 1")


def test_wrong_password(port):
    with pytest.raises(DatabaseError, match="516"):
        clickhouse_connect.get_client(host="127.0.0.1", port=port, username="me", password="wrong")


def test_external_data(client):
    from clickhouse_connect.driver.external import ExternalData

    data = ExternalData(file_name="ids", fmt="CSV", types=["UInt32", "String"], data=b"1,a\n2,b\n")
    assert client.query("SELECT sum(_1), max(_2) FROM ids", external_data=data).first_row == (3, "b")
