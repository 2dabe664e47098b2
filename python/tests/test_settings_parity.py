"""What Meltano makes of a project's settings, which the Go resolver must make of them, too.

testdata/projects.json (in internal/config) holds projects, project_answers.json
what Meltano answered for each. The Go tests compare with the answers kept; these
tests see that the Meltano at hand still gives the same ones. After a change,
write them anew with `python python/tests/test_settings_parity.py`.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import random
import subprocess
import tempfile
import typing as t
import warnings
from importlib.metadata import version
from unittest import mock

import dotenv
import pytest
from meltano.cli.cli import detect_selected_environment
from meltano.core.config_service import ConfigService
from meltano.core.error import MeltanoError
from meltano.core.project import Project

from meltano_state_backend_clickhouse import program
from meltano_state_backend_clickhouse.settings import SETTINGS, check_own
from meltano_state_backend_clickhouse.uri import connection_params

TESTDATA = pathlib.Path(__file__).parents[2] / "internal" / "config" / "testdata"
MAJOR = int(version("meltano").split(".")[0])
# "since" marks what Meltano 3 did differently (a name written both nested and flat).
PROJECTS = [
    p for p in json.loads((TESTDATA / "projects.json").read_text(encoding="utf-8")) if p.get("since", 0) <= MAJOR
]
ANSWERS = TESTDATA / "project_answers.json"
DOTENV = TESTDATA / "dotenv.json"


def our_settings() -> list[dict[str, t.Any]]:
    settings: list[dict[str, t.Any]] = json.loads((TESTDATA / "settings.json").read_text(encoding="utf-8"))
    return settings


def meltano_answer(case: dict[str, t.Any], root: pathlib.Path) -> dict[str, t.Any]:
    """Lay out a project and ask Meltano, as `meltano run` would find it.

    Returns:
        The value of each setting that is not None, or `{"error": class}`.
    """
    root = root.resolve()

    def here(text: str) -> str:
        return text.replace("{ROOT}", str(root))

    for name, text in case["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(here(text).encode())
    env = {name: here(text) for name, text in case["env"].items()}
    builtin = ConfigService.settings.func(mock.Mock(addon=mock.Mock(get_all=list)))  # type: ignore[attr-defined]
    before = pathlib.Path.cwd()
    try:
        os.chdir(root / case.get("cwd", ""))
        with (
            mock.patch.dict(os.environ, env, clear=True),
            mock.patch.object(ConfigService, "settings", builtin + list(SETTINGS)),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            project = Project.find(activate=False)
            environment, _ = detect_selected_environment(
                cli_environment=None,
                cli_no_environment=False,
                project=project,
            )
            if environment:
                project.activate_environment(environment)
            values = {}
            for s in our_settings():
                value = project.settings.get(s["key"])
                if value is not None:
                    values[s["name"]] = plain(value, root)
            return values
    except Exception as err:  # noqa: BLE001 - whatever Meltano raises is its answer
        return {"error": type(err).__name__}
    finally:
        os.chdir(before)


def plain(value: t.Any, root: pathlib.Path) -> t.Any:
    """Turn ruamel's scalars and the folder's name into what JSON can keep."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str(value).replace(str(root), "{ROOT}")
    return {"other": type(value).__name__}


def test_definitions_are_gos_settings() -> None:
    ours = {s["key"]: s for s in our_settings() if s["param"]}
    assert [d.name for d in SETTINGS] == list(ours)
    for definition in SETTINGS:
        assert bool(definition.sensitive) == ours[definition.name]["secret"]
        assert definition.value is None  # a default would beat the URI
        # The environment variable that Meltano reads is the one that we name.
        assert [v.key for v in definition.env_vars(["meltano"])] == [ours[definition.name]["env"]]


@pytest.mark.parametrize("number", range(len(PROJECTS)), ids=[p["name"] for p in PROJECTS])
def test_meltano_still_answers_so(number: int, tmp_path: pathlib.Path) -> None:
    answers = json.loads(ANSWERS.read_text(encoding="utf-8"))
    case = PROJECTS[number]
    answer = meltano_answer(case, tmp_path)
    kept = answers[case["name"]]
    if "error" in kept:  # its class differs between Meltano's versions
        assert "error" in answer
    else:
        assert answer == kept
    if "error" not in answer and "stricter" not in case:
        compare_with_tool(case, tmp_path.resolve(), answer)


def compare_with_tool(case: dict[str, t.Any], root: pathlib.Path, answer: dict[str, t.Any]) -> None:
    """`chstate config` in the same project shows the values that Meltano gives the add-on."""

    def here(value: t.Any) -> t.Any:
        return value.replace("{ROOT}", str(root)) if isinstance(value, str) else value

    answer = {name: here(value) for name, value in answer.items()}
    done = subprocess.run(
        [program.find(), "config", "--format", "json"],
        cwd=root / case.get("cwd", ""),
        env={name: here(value) for name, value in case["env"].items()},
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:  # refused: then the add-on refuses it, too
        assert done.stderr.startswith("chstate: cannot read settings: ")
        with pytest.raises(MeltanoError):
            refuse_as_addon(answer)
        return
    shown = {v["name"]: v["value"] for v in json.loads(done.stdout)}
    switches = {s["name"] for s in our_settings() if s["kind"] == "true/false"}  # YAML's 1 and 0 stay numbers
    for name, value in answer.items():
        if name in {"uri", "password"} or value == "":
            continue
        off = str(value).lower() in {"false", "0", "no", "off"}
        text = str(not off).lower() if name in switches else str(value)
        assert shown[name] == text, (name, done.stdout)


def refuse_as_addon(answer: dict[str, t.Any]) -> None:
    check_own(answer)
    connection_params(answer["uri"], answer)


# --- .env --------------------------------------------------------------------

ENVIRON = {"OUTSIDE": "from the environment", "A": "environment's A"}


def read_dotenv(text: str) -> dict[str, str]:
    """Read as Meltano does, by `Project.dotenv_env`."""
    with mock.patch.dict(os.environ, ENVIRON, clear=True):
        stream = io.StringIO(text, newline=None)
        return {name: v for name, v in dotenv.dotenv_values(stream=stream).items() if v is not None}


def test_dotenv_still_reads_so() -> None:
    kept = json.loads(DOTENV.read_text(encoding="utf-8"))
    assert len(kept) > 500
    for entry in kept:
        assert read_dotenv(entry["text"]) == entry["values"], entry["text"]


def random_dotenv() -> list[dict[str, t.Any]]:
    source = random.Random(1)
    pieces = [
        *"AB=='\"#\\ \n\n\t$${}:-",
        *("A=", "B=", "C=", "\nA=", "\nB=", "${A}", "${B:-x}", "${OUTSIDE}", "${NONE}", "${NONE:-y z}", "$A"),
        *("export ", "exportA", "\\n", "\\'", '\\"', "\\\\", "\\x", "\\t", "'a b'", '"a b"', "'a\nb'", '"a\\nb"'),
        *(
            " # c",
            "#c",
            "ä",
            "\r\n",
            "\r",
            "\u00a0",
            "\u2028",
            "\x0b",
            "\x1c",
            "\ufeff",
            "a.b=",
            "a-b=",
            "'A'=",
            "1=",
            "%",
            "!",
        ),
    ]
    entries = []
    for _ in range(1500):
        text = "".join(source.choices(pieces, k=source.randint(1, 14)))
        entries.append({"text": text, "values": read_dotenv(text)})
    return entries


def write() -> None:
    answers = {}
    for case in PROJECTS:
        with tempfile.TemporaryDirectory() as folder:
            answers[case["name"]] = meltano_answer(case, pathlib.Path(folder))
    lines = ",\n".join(
        f"{json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in answers.items()
    )
    ANSWERS.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    lines = ",\n".join(json.dumps(e) for e in random_dotenv())
    DOTENV.write_text("[\n" + lines + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write()
