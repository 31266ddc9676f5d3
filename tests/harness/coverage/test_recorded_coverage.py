"""Coverage of run folders: whole, damaged, not judged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.coverage.recorded_coverage import coverage_of, runs_below
from streamquake.harness.selftest.recorded import RECORDED
from streamquake.reports.coverage.cell import CheckpointKind, Phase, Place
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder


def recorded(out: Path, name: str = "20260101-000000-abcd", **when: Any) -> RunFolder:
    """A copy of the record with which the self-test works, a kill right after a completion; `when`
    replaces its trigger."""
    folder = RunFolder(out / name)
    shutil.copytree(RECORDED, folder.path)
    manifest = folder.read_manifest()
    if when:
        (step,) = manifest["experiment"]["faults"]
        step["when"] = when
        folder.write_manifest(manifest)
    folder.write_results(
        Results(
            run_id=str(manifest["run_id"]),
            experiment="recorded",
            seed=1,
            ended="completed",
            outcome=Outcome.HELD,
        )
    )
    return folder


def test_a_kill_whose_exact_moment_is_not_recorded_is_counted_as_not_proven(
    tmp_path: Path,
) -> None:
    names = ("20260101-000000-aaaa", "20260101-000000-bbbb")
    coverage = coverage_of([recorded(tmp_path, name) for name in names])
    assert coverage.problems == ()
    (cell,) = {hit.cell for hit in coverage.hits if hit.cell.place is Place.SINK}
    assert (cell.phase, cell.kind) == (Phase.COMPLETED, CheckpointKind.ALIGNED)
    counts = coverage.counts_of(coverage.hits_in(cell))
    assert (counts.verified, counts.not_proven) == (0, 2)
    assert coverage.count(cell) == 0
    assert cell in coverage.never_hit()


def test_a_window_that_the_record_contradicts_proves_nothing(tmp_path: Path) -> None:
    window = ["checkpoint completed", "sink committed"]  # it was committed 0.1 s before the effect
    coverage = coverage_of([recorded(tmp_path, between=window, nth=3)])
    assert coverage.hits
    assert not any(hit.verified for hit in coverage.hits)


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("history.jsonl", "not a history\n", "history.jsonl: not a history of schema 1"),
        ("run.json", "{", "run.json: not JSON"),
        ("results.json", '{"schema": 7}', "results.json: not results of a run"),
        ("history.jsonl", None, "expected a history.jsonl, and there is none"),
        ("results.json", None, "expected a results.json, and there is none"),
    ],
)
def test_a_broken_record_is_named_and_left_out(
    file: str, text: str | None, named: str, tmp_path: Path
) -> None:
    whole, broken = recorded(tmp_path), recorded(tmp_path, "broken")
    if text is None:
        (broken.path / file).unlink()
    else:
        (broken.path / file).write_text(text)
    coverage = coverage_of([whole, broken])
    (problem,) = coverage.problems
    assert str(broken.path) in problem
    assert named in problem
    assert [run.folder for run in coverage.runs] == [whole.path]


def test_a_record_with_a_pipe_is_left_out_since_reading_it_might_never_end(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    folder.history.unlink()
    os.mkfifo(folder.history)
    (problem,) = coverage_of([folder]).problems
    assert "history.jsonl: expected a file or a folder, found a pipe" in problem


def test_a_history_with_a_missing_line_is_left_out(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    lines = folder.history.read_text().splitlines(keepends=True)
    folder.history.write_text("".join([*lines[:50], *lines[51:]]))
    (problem,) = coverage_of([folder]).problems
    assert "expected event 49, found event 50" in problem


def test_an_event_with_a_wrong_field_is_left_out(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    text = folder.history.read_text().replace('"step": 0', '"step": "first"')
    folder.history.write_text(text)
    assert len(coverage_of([folder]).problems) == 1


def test_folders_and_runs_are_read_once_each_the_oldest_first(tmp_path: Path) -> None:
    first, second = recorded(tmp_path, "a"), recorded(tmp_path, "b")
    found = list(runs_below([second.path, tmp_path, tmp_path / "." / "a"]))
    assert [run.run_id for run in found] == [first.run_id, second.run_id]
    assert list(runs_below([tmp_path / "nothing"])) == []
