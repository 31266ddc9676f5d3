"""The matrix of hits, its table, its JSON and its page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamquake.reports.coverage.cell import CheckpointKind, Phase, Place
from streamquake.reports.coverage.coverage import Coverage
from streamquake.reports.coverage.coverage_html import (
    EXPECTED,
    NEVER,
    UNEXPECTED,
    UNKNOWN,
    UNPROVEN,
    render_coverage,
)
from streamquake.reports.coverage.coverage_text import (
    coverage_table,
    never_hit_lines,
    summary_lines,
)
from tests.reports.coverage_runs import cell, coverage, hit, run_of
from tests.reports.test_html import HOSTILE, Page

A, B = run_of("a"), run_of("b", outcome="violated", as_expected=0)
SINK, SOURCE = cell(), cell(place=Place.SOURCE)


def test_a_cell_counts_injections_with_proof() -> None:
    found = coverage(hit(A, SINK), hit(B, SINK), hit(B, SINK, step=1, verified=False))
    assert found.count(SINK) == 2
    assert found.count(SOURCE) == 0
    counts = found.counts_of(found.hits_in(SINK))
    assert (counts.verified, counts.not_proven) == (2, 1)
    assert counts.results == {"held": 1, "violated, not as expected": 1}


def test_an_injection_in_several_places_counts_once_in_the_matrix() -> None:
    found = coverage(hit(A, SINK), hit(A, SOURCE), hit(A, SOURCE, verified=False))
    assert found.matrix()["kill", Phase.BARRIER].verified == 1
    assert found.matrix()["kill", Phase.BARRIER].not_proven == 0
    assert found.matrix(place=Place.SINK)["kill", Phase.BARRIER].verified == 1
    assert found.matrix(kind=CheckpointKind.UNALIGNED) == {}


def test_a_cell_without_proof_is_never_hit() -> None:
    other = cell("pause", Phase.RESTORE)
    found = coverage(hit(A, SINK), hit(A, SOURCE, verified=False), possible=(SINK, SOURCE, other))
    assert found.never_hit() == (SOURCE, other)
    assert coverage(hit(A, SINK), possible=(SINK,)).never_hit() == ()


@pytest.mark.parametrize(
    ("results", "expected"), [((1, 1), 1), ((1, 0), 0), ((None, 0), 0), ((1, None), None)]
)
def test_one_run_that_is_not_as_expected_decides_for_its_cell(
    results: tuple[int | None, int | None], expected: int | None
) -> None:
    runs = [run_of(str(number), as_expected=each) for number, each in enumerate(results)]
    found = coverage(*(hit(run, SINK) for run in runs))
    assert found.matrix()["kill", Phase.BARRIER].as_expected == expected


@pytest.mark.parametrize(
    ("outcome", "as_expected", "text"),
    [
        ("held", 1, "held"),
        ("violated", 1, "violated, as expected"),
        ("violated", 0, "violated, not as expected"),
        ("held", 0, "held, not as expected"),
        ("undecided", None, "undecided"),
    ],
)
def test_a_result_is_its_outcome_and_whether_that_was_expected(
    outcome: str, as_expected: int | None, text: str
) -> None:
    assert run_of("a", outcome=outcome, as_expected=as_expected).result == text


def shown(found: Coverage) -> list[list[str]]:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(coverage_table(found))
    return [line.split() for line in capture.get().splitlines()]


def test_the_table_has_counts_open_cells_and_cells_that_were_never_hit() -> None:
    found = coverage(
        hit(A, SINK),
        hit(B, SINK, verified=False),
        hit(A, cell("pause", Phase.RESTORE), step=1, verified=False),
        possible=(SINK, cell("kill", Phase.RESTORE), cell("surge", Phase.RESTORE)),
    )
    *_, kill, pause = shown(found)
    assert kill == ["kill", "1", "?1", "·"]
    assert pause == ["pause", "?1"]
    assert list(summary_lines(found)) == [
        "runs: 2; injections: 1 with a proven phase, 2 without",
        "1 of 3 possible cells hit",
        "1 of 2 faults not in any record",
    ]


def test_cells_that_were_never_hit_are_a_line_for_each_phase() -> None:
    cells = (SINK, SOURCE, replace(SINK, kind=CheckpointKind.UNALIGNED), cell(phase=Phase.LOAD_END))
    plain = replace(cells[3], kind=CheckpointKind.NONE)
    assert list(never_hit_lines((*cells[:3], plain))) == [
        "kill: barrier to acknowledgement (aligned, unaligned): source, sink",
        "kill: load ends: sink",
    ]


def test_json_has_every_cell_with_its_runs() -> None:
    document = coverage(hit(B, SINK), possible=(SINK, SOURCE)).to_json()
    source, sink = document["cells"]
    assert (source["place"], source["verified"], source["possible"]) == ("source", 0, True)
    assert (sink["verified"], sink["runs"]) == (1, ["runs/b"])
    assert sink["results"] == {"violated, not as expected": 1}
    assert json.loads(json.dumps(document)) == document


def page_of(found: Coverage, folder: Path) -> tuple[Page, dict[str, Any]]:
    page = Page(render_coverage(found, folder / "coverage.html").read_text(encoding="utf-8"))
    (data,) = (script for script in page.scripts if script.startswith('{"faults"'))
    return page, json.loads(data)


def test_the_page_links_the_injections_to_their_runs(tmp_path: Path) -> None:
    run, gone = run_of("a b", tmp_path / "runs"), run_of("c", tmp_path / "runs")
    run.folder.mkdir(parents=True)
    (run.folder / "report.html").write_text("page")
    page, data = page_of(coverage(hit(run, SINK), hit(gone, SINK)), tmp_path)
    assert [tag["href"] for name, tag in page.tags if name == "a"] == ["runs/a%20b/report.html"]
    assert [link for _, _, link in data["runs"]] == ["runs/a%20b/report.html", ""]
    assert "proven: seen" in page.text


def test_the_cells_of_the_page_have_their_state_for_every_selection(tmp_path: Path) -> None:
    unknown = run_of("c", as_expected=None)
    found = coverage(
        hit(A, SINK),
        hit(B, cell(phase=Phase.RESTORE)),
        hit(unknown, cell(phase=Phase.RESTART)),
        hit(A, cell(phase=Phase.COMPLETED), verified=False),
        possible=(SINK, cell(phase=Phase.LOAD_END)),
    )
    _, data = page_of(found, tmp_path)
    states = {phase: state for _, phase, state, *_ in data["cells"]["all/all"]}
    assert states == {
        Phase.BARRIER: EXPECTED,
        Phase.RESTORE: UNEXPECTED,
        Phase.RESTART: UNKNOWN,
        Phase.COMPLETED: UNPROVEN,
        Phase.LOAD_END: NEVER,
    }
    assert data["cells"]["sink/aligned"] == data["cells"]["all/all"]
    assert data["cells"]["source/all"] == []
    assert [phase for phase in Phase if phase in states] == data["phases"]


def test_the_page_names_what_no_run_hit_and_what_was_left_out(tmp_path: Path) -> None:
    found = replace(coverage(hit(A, SINK), possible=(SINK, SOURCE)), problems=("x: no results",))
    page, _ = page_of(found, tmp_path)
    assert "1 of 1 pairs of fault and phase hit" in page.text
    assert "kill: barrier to acknowledgement (aligned): source" in page.text
    assert "x: no results" in page.text


def test_a_page_without_faults_is_a_page(tmp_path: Path) -> None:
    page, data = page_of(Coverage(runs=(A,), possible=frozenset({SINK})), tmp_path)
    assert "No fault was injected in these runs." in page.text
    assert data["cells"]["all/all"] == [["kill", "barrier to acknowledgement", NEVER, 0, 0, []]]


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    run = replace(run_of("a"), experiment=HOSTILE)
    found = replace(coverage(hit(run, SINK, how=HOSTILE)), problems=(HOSTILE,))
    page, _ = page_of(found, tmp_path)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert HOSTILE in page.text
    assert not [script for script in page.scripts if script.startswith("alert")]
