"""The list of a release's options: bad arguments, and what is kept of the program's output."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.engines.flink import option_list


def test_a_missing_and_an_unknown_release_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert option_list.main([]) == 2
    assert "usage" in capsys.readouterr().out
    assert option_list.main(["1.20.9"]) == 2
    assert "no flink release '1.20.9'" in capsys.readouterr().err


def test_only_rows_of_options_are_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = "WARNING: illegal access\nheartbeat.interval\t10 s\t\nrest.port\t8081\tweb.port\n"
    monkeypatch.setattr(option_list, "FOLDER", tmp_path)
    monkeypatch.setattr(option_list, "flink_distribution", lambda recipe, show: tmp_path)
    monkeypatch.setattr(option_list, "compiler", lambda clients: tmp_path)
    monkeypatch.setattr(option_list, "compile_jar", lambda *arguments: None)
    monkeypatch.setattr(option_list, "run_here", lambda *arguments: printed)

    assert option_list.main(["1.20.1"]) == 0

    listed = tmp_path / "flink-1.20.1.tsv"
    assert capsys.readouterr().out == f"{listed}\n"
    assert listed.read_text() == option_list.HEAD + "".join(printed.splitlines(True)[1:])
