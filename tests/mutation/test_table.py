"""The table of mutants: what counts as killed, what is not judged, and when it fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.mutation import __main__ as table

JUDGE = "streamquake.harness.verdict.judge.x_judge__mutmut_"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of mutants; every mutant's line is its name's last part."""
    monkeypatch.setattr(table, "MUTANTS", tmp_path)
    monkeypatch.setattr(table, "EQUAL", tmp_path / "equal.tsv")
    monkeypatch.setattr(
        table, "changed_lines", lambda mutant, path: ("", mutant.rpartition("_")[2])
    )
    (tmp_path / "equal.tsv").write_text(f"{JUDGE.removesuffix('__mutmut_')}\t99\tthe same\n")
    return tmp_path


def made(folder: Path, module: str, codes: Mapping[str, int | None]) -> None:
    path = folder / (module.replace(".", "/") + ".py.meta")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"exit_code_by_key": codes}))


def judged(killed: int, survived: int) -> dict[str, int | None]:
    return {f"{JUDGE}{n}": 1 if n < killed else 0 for n in range(killed + survived)}


@pytest.mark.parametrize(("killed", "survived", "status"), [(19, 1, 0), (18, 1, 1), (9, 0, 0)])
def test_a_module_below_the_share_fails(
    folder: Path, killed: int, survived: int, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    made(folder, "streamquake.harness.verdict.judge", judged(killed, survived))
    assert table.main([]) == status
    message = capsys.readouterr().out
    assert (f"survived: {JUDGE}{killed}" in message) == bool(survived)
    assert ("95% are needed" in message) == bool(status)


def test_equal_mutants_and_those_not_run_are_not_judged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = {f"{JUDGE}1": 1, f"{JUDGE}2": -24, f"{JUDGE}99": 0, f"{JUDGE}4": None, f"{JUDGE}5": 34}
    made(folder, "streamquake.harness.verdict.judge", codes)
    (module,) = table.modules()
    assert module.counts == {"killed": 2, "equal": 1, "not run": 2}
    assert (module.share, module.survivors) == (1.0, [])
    assert table.main([]) == 0
    assert "harness.verdict.judge" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("module", "old", "new", "equal"),
    [
        ("verdict.evidence.pauses", 'F.col("gap_ms")', 'F.col("GAP_MS")', 1),
        ("verdict.evidence.pauses", 'F.col("gap_ms")', 'F.col("gap")', 0),
        ("judge", '"gap_ms"', '"GAP_MS"', 0),
        ("checks.effect", '"gap_ms"', '"GAP_MS"', 0),
    ],
)
def test_a_name_for_spark_in_other_letters_is_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, old: str, new: str, equal: int
) -> None:
    monkeypatch.setattr(table, "changed_lines", lambda mutant, path: (old, new))
    made(folder, f"streamquake.harness.{module}", {"x__mutmut_1": 0})
    (found,) = table.modules()
    assert (found.counts["equal"], found.counts["survived"]) == (equal, 1 - equal)


def test_code_that_no_test_reaches_survives(folder: Path) -> None:
    made(folder, "streamquake.harness.verdict.judge", {f"{JUDGE}1": 33})
    (judge,) = table.modules()
    assert (judge.judged, judge.share, judge.counts["no tests"]) == (1, 0.0, 1)
    assert table.main(["streamquake.harness.verdict.judge*"]) == 1


@pytest.mark.parametrize("pattern", ["streamquake.harness.verdict.judge*", f"{JUDGE}1"])
def test_a_part_is_judged_by_itself(
    folder: Path, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made(folder, "streamquake.harness.verdict.judge", {f"{JUDGE}1": 1})
    made(folder, "streamquake.harness.run.runner", {"x__mutmut_1": 0})
    assert table.main([pattern]) == 0
    assert "runner" not in capsys.readouterr().out
    assert table.main([]) == 1


def test_where_nothing_was_run_nothing_is_proven(folder: Path) -> None:
    assert table.main([]) == 1
    made(folder, "streamquake.harness.verdict.judge", {f"{JUDGE}1": None})
    assert table.main([]) == 1


def test_the_results_are_read_in_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table, "COPY", tmp_path / "copy")
    assert table.main_in_copy([]) == 1
    assert "copy is missing" in capsys.readouterr().out

    made(tmp_path / "copy" / "mutants", "streamquake.harness.verdict.judge", judged(1, 0))
    monkeypatch.setattr(table, "modules_of_spark", frozenset)
    assert table.main_in_copy([]) == 0
    assert "harness.verdict.judge" in capsys.readouterr().out


def test_every_equal_mutant_is_listed_once_with_its_reason() -> None:
    lines = (Path(table.__file__).with_name("equal.tsv")).read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    assert all(len(row) == 3 and all(row) for row in rows)
    assert len({(row[0], row[1]) for row in rows}) == len(rows)
