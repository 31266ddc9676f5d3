"""`results` and `prune`: the recorded runs as a table, and the space of old ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streamquake.harness.cli import program
from streamquake.harness.cli.guard import guarded
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.run_folder import RunFolder, list_runs
from streamquake.reports.store.results_store import ResultsStore
from tests.reports.stored_runs import VERSIONS, judged_run, run_id_of


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "runs"


def lines(capsys: pytest.CaptureFixture[str], *argv: str, status: int = 0) -> list[list[str]]:
    assert guarded(program, argv) == status
    return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_results_are_rates_and_medians_by_key(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, took_s in enumerate((1.0, 3.0, 2.0)):
        judged_run(out, number, took_s=took_s)
    judged_run(out, 3, outcome=Outcome.UNDECIDED, versions={**VERSIONS, "flink": "2.3"})
    judged_run(out, 4, experiment="b", outcome=Outcome.VIOLATED)

    head, first, newer, other = lines(capsys, "results", "--figure", "recovery.longest_s")

    assert " ".join(head) == "experiment key as expected undecided last run recovery.longest_s"
    assert " ".join([first[0], *first[2:]]) == (
        f"a 3 of 3 (44% to 100%) {run_id_of(2)} 2 (1 to 3, n 3)"
    )
    assert " ".join([newer[0], *newer[2:]]) == f"a 0 of 1 (0% to 79%) 1 {run_id_of(3)} 2.5"
    assert " ".join([other[0], *other[2:]]) == f"b 0 of 1 (0% to 79%) {run_id_of(4)} 2.5"


def test_results_may_be_listed_one_by_one(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged_run(out, 0)
    judged_run(out, 1, outcome=Outcome.VIOLATED)
    judged_run(out, 2, ended="failed_to_run", outcome=Outcome.UNDECIDED)

    shown = [" ".join(line) for line in lines(capsys, "results", "--each")]

    assert shown == [
        "run experiment seed outcome expected load",
        f"{run_id_of(0)} a 0 held as expected 0.5",
        f"{run_id_of(1)} a 1 violated expected held 0.5",
        f"{run_id_of(2)} a 2 undecided, failed to run not known 0.5",
    ]


def test_results_may_be_selected_and_printed_as_json(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged_run(out, 0)
    judged_run(out, 1, started_at=datetime.now(UTC).isoformat(timespec="seconds"))
    assert guarded(program, ["results", "--json", "--since", "2h"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["run_id"], run["figures"]["recovery.restarted_s"]) == (run_id_of(1), 1.5)
    assert lines(capsys, "results", "--where", "seed > 5") == [
        ["no", "such", "runs", "in", "runs/results.sqlite"]
    ]


@pytest.mark.parametrize("given", ["7", "0d", "d", "1y", "-1h", "1d2h", "9999999d"])
def test_a_duration_has_a_number_and_a_unit(
    given: str, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(program, ["results", "--since", given]) == 2
    assert "expected a number and a unit of s (seconds), m (minutes)" in capsys.readouterr().err


def test_unknown_columns_are_bad_input_with_the_known_ones(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged_run(out)
    assert guarded(program, ["results", "--where", "flavour = 1"]) == 2
    assert "no such column: flavour; expected a condition" in capsys.readouterr().err


def test_a_rebuild_reads_new_folders_and_names_those_left_out(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged_run(out, 0)
    assert len(lines(capsys, "results", "--each")) == 2
    folder, _ = judged_run(out, 1)
    folder.results.unlink()
    judged_run(out, 2)
    assert len(lines(capsys, "results", "--each")) == 2
    assert guarded(program, ["results", "--each", "--rebuild"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 3
    assert captured.err == f"left out: {run_id_of(1)}: it was not judged\n"


def test_prune_removes_old_runs_that_were_as_expected(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(4):
        judged_run(out, number)
    judged_run(out, 4, experiment="b")
    judged_run(out, 5, outcome=Outcome.VIOLATED)
    unjudged, _ = judged_run(out, 6)
    unjudged.results.unlink()
    before = list_runs(out)

    assert lines(capsys, "prune", "--keep", "2", "--dry-run")[0][:4] == ["3", "runs", "would", "be"]
    assert list_runs(out) == before or len(list_runs(out)) == len(before)
    assert lines(capsys, "prune", "--keep", "2")[0][:3] == ["3", "runs", "removed,"]

    left = {folder.run_id for folder in list_runs(out)}
    assert left == {run_id_of(number) for number in (3, 4, 5, 6)}
    assert {run.run_id for run in ResultsStore(out).runs()} == {run_id_of(n) for n in range(6)}


def test_prune_leaves_no_dangling_link_to_the_latest_run(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged_run(out)
    assert lines(capsys, "prune", "--keep", "0")[0][:3] == ["1", "runs", "removed,"]
    assert [path.name for path in out.iterdir()] == ["results.sqlite"]


def test_prune_needs_a_number(capsys: pytest.CaptureFixture[str], out: Path) -> None:
    assert guarded(program, ["prune"]) == 2
    assert "--keep" in capsys.readouterr().err


def test_prune_keeps_a_run_that_cannot_be_stored(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = judged_run(out)
    RunFolder(folder.path).manifest.write_text("{}", "utf-8")
    shown = [" ".join(line) for line in lines(capsys, "prune", "--keep", "0")]
    assert shown == [
        f"kept: {folder.run_id} is not in runs/results.sqlite",
        "0 runs removed, 0 MiB",
    ]


@pytest.mark.parametrize("experiment", [None, "x", [], 5])
def test_a_run_whose_manifest_is_damaged_is_listed_as_unreadable(
    capsys: pytest.CaptureFixture[str], out: Path, experiment: object
) -> None:
    folder, _ = judged_run(out)
    damaged = {**folder.read_manifest(), "experiment": experiment}
    folder.manifest.write_text(json.dumps(damaged), encoding="utf-8")

    assert guarded(program, ["list", "runs", "--out", str(out), "--json"]) == 0

    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert listed["outcome"].startswith("unreadable: ")
