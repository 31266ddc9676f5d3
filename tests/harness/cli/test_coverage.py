"""`coverage`: the records of folders as a table, JSON and a page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from streamquake.harness.cli import program
from streamquake.harness.cli.guard import guarded
from streamquake.harness.selftest.recorded import RECORDED
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def recorded(out: Path, name: str = "a") -> RunFolder:
    folder = RunFolder(out / name)
    shutil.copytree(RECORDED, folder.path)
    folder.write_results(
        Results(
            run_id=str(folder.read_manifest()["run_id"]),
            experiment="recorded",
            seed=1,
            ended="completed",
            outcome=Outcome.HELD,
        )
    )
    return folder


def test_coverage_prints_a_table_and_writes_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    recorded(Path("runs"))
    assert guarded(program, ["coverage"]) == 0
    shown = capsys.readouterr()
    assert "runs: 1; injections: 0 with a proven phase, 1 without" in shown.out
    (row,) = (line.split() for line in shown.out.splitlines() if line.startswith("kill"))
    assert "?1" in row
    assert shown.out.splitlines()[-1] == "runs/coverage.html"
    assert "kill" in Path("runs/coverage.html").read_text(encoding="utf-8")
    assert "slow_link: restore" not in shown.out


def test_coverage_lists_what_no_run_hit(capsys: pytest.CaptureFixture[str]) -> None:
    recorded(Path("runs"))
    assert guarded(program, ["coverage", "--never", "--page", "page.html"]) == 0
    shown = capsys.readouterr().out
    assert "slow_link: restore (aligned, unaligned, savepoint, micro-batch)" in shown
    assert Path("page.html").exists()


def test_coverage_of_several_folders_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    recorded(Path("one"))
    recorded(Path("two"), "b")
    (Path("two") / "broken").mkdir()
    (Path("two") / "broken" / "run.json").write_text("{")
    assert guarded(program, ["coverage", "one", "two", "--json"]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert (document["schema"], document["runs"]) == (1, 2)
    (problem,) = document["problems"]
    assert problem.startswith("two/broken")
    assert f"left out: {problem}" in shown.err


def test_a_folder_without_judged_runs_has_no_page(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs").mkdir()
    assert guarded(program, ["coverage"]) == 0
    assert capsys.readouterr().out == "no judged runs in runs\n"
    assert not Path("runs/coverage.html").exists()


@pytest.mark.parametrize("argv", [["missing"], ["--page", "missing/page.html"], ["file"]])
def test_a_wrong_path_is_bad_input(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    assert guarded(program, ["coverage", *argv]) == 2
    shown = capsys.readouterr().err
    assert "missing" in shown or "file" in shown
    assert "Traceback" not in shown
