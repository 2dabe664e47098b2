"""The URI parser, held to the corpus that the Go parser is held to."""

from __future__ import annotations

import inspect
import json
import pathlib
import subprocess
import sys
import typing as t

import pytest
from clickhouse_connect.driver.httpclient import HttpClient
from meltano.core.error import MeltanoError
from meltano.core.state_store.base import MissingStateBackendSettingsError

from meltano_state_backend_clickhouse.errors import (
    InvalidSettingsError,
    InvalidURIError,
)
from meltano_state_backend_clickhouse.uri import (
    connection_params,
    connection_params_from_uri,
)
from meltano_state_backend_clickhouse.values import KINDS, TEXTUAL

TESTDATA = pathlib.Path(__file__).parents[2] / "internal" / "config" / "testdata"
CORPUS = json.loads((TESTDATA / "uri_corpus.json").read_text(encoding="utf-8"))
SETTINGS = json.loads((TESTDATA / "settings.json").read_text(encoding="utf-8"))
REPORTED = [line.split("\t") for line in (TESTDATA / "uri_cases.tsv").read_text(encoding="utf-8").splitlines()[1:]]


@pytest.mark.parametrize("number", range(len(CORPUS)))
def test_corpus(number: int) -> None:
    entry = CORPUS[number]
    if "params" in entry:
        assert connection_params_from_uri(entry["uri"]) == entry["params"]
    elif "missing" in entry:
        with pytest.raises(MissingStateBackendSettingsError) as missing:
            connection_params_from_uri(entry["uri"])
        assert isinstance(missing.value, MeltanoError)
        assert missing.value.args[0] == entry["missing"]
    else:
        with pytest.raises(InvalidURIError) as invalid:
            connection_params_from_uri(entry["uri"])
        assert isinstance(invalid.value, MeltanoError)
        assert isinstance(invalid.value, ValueError)
        assert invalid.value.args[0] == entry["invalid"]
        assert entry["invalid"][-1] not in ".?!"  # Meltano puts a full stop behind it


@pytest.mark.parametrize(("uri", "expected"), REPORTED, ids=[r[0] for r in REPORTED])
def test_n01_reported(uri: str, expected: str) -> None:
    """The cases that people reported, as they were written down."""
    if expected.startswith("error"):
        with pytest.raises(MeltanoError) as caught:
            connection_params_from_uri(uri)
        shown = f"{caught.value} {caught.value!r}"
        if "percent-encode" in expected or "same" in expected:
            assert "percent-encode" in shown
        for secret in ("p#w", "p/w", "p?w", "p[w"):
            assert secret not in shown
        return
    params = connection_params_from_uri(uri)
    if expected.startswith("works: password "):
        assert params["password"] == expected.removeprefix("works: password ").split(" (")[0]
    if expected.startswith("works: empty password"):
        assert params["password"] == ""
    if expected.startswith("TLS on"):
        assert (params["secure"], params["port"]) == (True, 8443)
    if expected == "works: IPv6":
        assert params["host"] == "::1"


def test_readme_example() -> None:
    assert connection_params_from_uri("clickhouse://user:password@host:8123/database") == {
        "host": "host",
        "port": 8123,
        "username": "user",
        "password": "password",
        "database": "database",
        "secure": False,
    }


def test_same_settings_as_go() -> None:
    """Names, kinds and defaults of the Go table."""
    assert list(KINDS) == [s["param"] for s in SETTINGS if s["param"]]
    textual = {s["name"] for s in SETTINGS if s["param"] and s["kind"] in {"text", "path"}}
    assert textual == TEXTUAL
    for s in SETTINGS:
        if s["param"] and s["default"]:
            KINDS[s["name"]](s["name"], s["default"], "the default")


def test_settings_over_uri() -> None:
    params = connection_params(
        "clickhouse://u:p@h:8443/d?table=t&connect_timeout=5",
        {"host": "other", "port": 8123, "user": None, "password": "", "table": "s", "lock_timeout_seconds": 10},
    )
    assert params == {
        "host": "other",
        "port": 8123,
        "username": "u",
        "password": "p",
        "database": "d",
        "secure": False,
        "connect_timeout": 5,
    }
    assert connection_params("clickhouse://h", {"user": "u", "database": "d"})["username"] == "u"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", 1.5),
        ("user", True),
        ("table", ["x"]),
        ("port", 1.5),
        ("secure", 2),
        ("cluster", {"a": 1}),
        ("history_days", -1),
        ("verify", "maybe"),
        ("lock_strategy", "zookeeper"),
    ],
)
def test_settings_refused(name: str, value: t.Any) -> None:
    with pytest.raises(InvalidSettingsError, match=rf"state_backend\.clickhouse\.{name} .*from Meltano") as caught:
        connection_params("clickhouse://u:p@h/d", {name: value})
    assert not isinstance(caught.value, InvalidURIError)


def test_numbers_that_meltano_gives() -> None:
    params = connection_params("clickhouse://u@h/d", {"password": 12345678901234567890, "secure": True, "port": 9999.0})
    assert params["password"] == "12345678901234567890"
    assert (params["secure"], params["port"]) == (True, 9999)


def test_password_file(tmp_path: pathlib.Path) -> None:
    good, empty, lines = tmp_path / "good", tmp_path / "empty", tmp_path / "lines"
    good.write_text("from the file\r\n", newline="")
    empty.write_text("\n")
    lines.write_text("Geheim\nwOrt\n")
    assert connection_params_from_uri(f"clickhouse://u@h/d?password_file={good}")["password"] == "from the file"
    # A setting beats the URI, and two of one source are an error.
    assert connection_params("clickhouse://u:p@h/d", {"password_file": str(good)})["password"] == "from the file"
    with pytest.raises(InvalidURIError, match="both set"):
        connection_params_from_uri(f"clickhouse://u:p@h/d?password_file={good}")
    with pytest.raises(InvalidSettingsError, match="both set"):
        connection_params("clickhouse://u@h/d", {"password_file": str(good), "password": "x"})
    for path, says in (
        (empty, "which is empty"),
        (lines, "more than one line"),
        (tmp_path / "none", "no such file"),
        (tmp_path, "cannot be read"),
    ):
        with pytest.raises(InvalidSettingsError, match=says) as caught:
            connection_params("clickhouse://u@h/d", {"password_file": str(path)})
        assert "Geheim" not in str(caught.value)


def test_params_are_the_clients() -> None:
    """Each name is an argument that clickhouse-connect's get_client takes."""
    known = set(inspect.signature(HttpClient.__init__).parameters) | {"secure"}
    for entry in CORPUS:
        assert set(entry.get("params", ())) <= known


def test_import_is_cheap() -> None:
    """Beside what Meltano has loaded already, only our own modules are."""
    code = (
        "import sys, meltano.core.state_store, meltano_state_backend_clickhouse\n"
        "before = set(sys.modules)\n"
        "import meltano_state_backend_clickhouse.uri\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {m.split(".")[0] for m in done.stdout.split()} == {"meltano_state_backend_clickhouse"}
