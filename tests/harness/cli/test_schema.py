"""`schema`: the JSON Schemas, printed or written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamquake.harness.cli import program
from streamquake.harness.cli.guard import guarded
from streamquake.harness.schema.schemas import MODELS, document_schema

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", MODELS)
def test_a_schema_is_printed_as_json(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(program, ["schema", kind]) == 0
    assert json.loads(capsys.readouterr().out) == document_schema(kind)


def test_a_schema_is_written_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "suite.json"

    assert guarded(program, ["schema", "suite", "--out", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: written\n"
    assert json.loads(file.read_text("utf-8")) == document_schema("suite")


def test_without_a_kind_the_commands_for_all_kinds_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(program, ["schema"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"streamquake schema {kind} --out {kind}.schema.json"
        for kind in ("topology", "experiment", "suite")
    ]


@pytest.mark.parametrize(
    "argv", [["topolgy"], ["--out", "x.json"], ["topology", "--out", "nowhere/x.json"]]
)
def test_wrong_arguments_are_bad_input(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert guarded(program, ["schema", *argv]) == 2
    assert [*tmp_path.iterdir()] == []


def test_the_help_shows_how_an_editor_uses_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(program, ["schema", "--help"]) == 0
    assert "# yaml-language-server: $schema=experiment.schema.json" in capsys.readouterr().out
