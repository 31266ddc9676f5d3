"""Slopes over a series: the slope of a line through its runs, with bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.suite.loader import Row
from streamquake.harness.campaign.suite.row_outcome import row_result
from streamquake.harness.campaign.suite.suite_run import CompletedRun
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.suite.suite_results import Role, RowResult
from tests.harness.campaign.suite.fake_suites import claim
from tests.reports.suite_runs import suite_run

HELD, UNDECIDED, VIOLATED = Outcome
SERIES = ({"experiment": "five", "at": 5}, {"experiment": "ten", "at": 10})


def completed_run(name: str, role: Role = "series", **counts: float | None) -> CompletedRun:
    check = CheckResult(check="c", outcome=HELD, summary="", counts=counts)
    results = Results(
        run_id="r", experiment=name, seed=0, ended="completed", outcome=HELD, checks=(check,)
    )
    return CompletedRun(run=suite_run(experiment=name, role=role), results=results)


def row_of(*runs: CompletedRun, planned: int = 0, **slope: Any) -> RowResult:
    slopes = ({"figure": "c.y", **slope},)
    source = claim("twenty", at=20, series=SERIES, slopes=slopes)
    names = ("twenty", "five", "ten")
    row = Row(source=source, experiment=Path("a"), control=None, names=names)
    return row_result(
        row, topology="t", expected=ExpectedOutcome(), planned=planned or len(runs), completed=runs
    )


def line(five: float | None, ten: float | None, twenty: float | None) -> tuple[CompletedRun, ...]:
    return (
        completed_run("twenty", "claim", y=twenty),
        completed_run("five", y=five),
        completed_run("ten", y=ten),
    )


@pytest.mark.parametrize(
    ("points", "bounds", "outcome"),
    [
        ((8, 13, 23), {"at_least": 0.8, "at_most": 1.2}, HELD),  # a constant offset has no effect
        ((8, 13, 23), {"at_least": 1.01}, VIOLATED),
        ((8, 13, 23), {"at_most": 0.99}, VIOLATED),
        ((8, 8, 8), {"at_least": 0.8}, VIOLATED),
        ((8, None, 23), {"at_least": 0.8}, UNDECIDED),
    ],
)
def test_a_slope_over_settings(
    points: tuple[float | None, ...], bounds: dict[str, Any], outcome: Outcome
) -> None:
    row = row_of(*line(*points), **bounds)
    assert row.outcome == outcome, row.why


@pytest.mark.parametrize(
    ("spread", "bounds", "outcome"),
    [
        (0.1, {"at_least": 0.8, "at_most": 1.2}, HELD),
        (0.1, {"at_least": 1.5}, VIOLATED),
        (0.1, {"at_most": 0.5}, VIOLATED),
        (6.0, {"at_least": 0.8, "at_most": 1.2}, UNDECIDED),
        (6.0, {"at_least": 1.3}, UNDECIDED),
    ],
)
def test_a_slope_over_repeats_counts_with_its_interval(
    spread: float, bounds: dict[str, Any], outcome: Outcome
) -> None:
    runs = (*line(8 - spread, 13, 23 + spread), *line(8 + spread, 13, 23 - spread))
    row = row_of(*runs, **bounds)
    assert row.outcome == outcome, row.why
    assert row.claim is not None
    (found,) = row.claim.relations
    assert "; interval " in found.text
    assert found.p is not None
    assert ("too noisy to say with 6 runs" in found.text) == (outcome == UNDECIDED)


def test_the_text_of_a_slope_has_its_points_its_value_and_its_bounds() -> None:
    row = row_of(*line(8, 13, 23), at_least=0.8, at_most=1.2)
    assert row.claim is not None
    assert [each.text for each in row.claim.relations] == [
        "c.y: slope is 1 (8 at 5, 13 at 10, 23 at 20), wanted at least 0.8 and at most 1.2"
    ]
    assert list(row.figures) == ["c.y"]
    assert row.figures["c.y"] is not None
    assert row.figures["c.y"].values == (23,)  # the row's own experiment


def test_a_slope_over_a_figure_needs_that_figure_in_every_run() -> None:
    runs = [
        completed_run("twenty", "claim", x=3.0, y=4500.0),
        completed_run("five", x=1.0, y=1500.0),
    ]
    row = row_of(
        *runs, completed_run("ten", x=2.0, y=3000.0), over="c.x", at_least=1200, at_most=1800
    )
    assert row.outcome == HELD
    row = row_of(*runs, completed_run("ten", x=None, y=3000.0), over="c.x", at_least=1200)
    assert (row.outcome, row.why) == (
        UNDECIDED,
        "c.y over c.x: slope is unknown: 1 of 3 runs have no such figure",
    )
    row = row_of(*(completed_run(n, x=1.0, y=2.0) for n in ("five", "ten")), over="c.x", at_least=1)
    assert row.outcome == UNDECIDED
    assert "all points have the same x" in row.why


def test_slopes_are_not_judged_before_every_run_is_completed() -> None:
    row = row_of(
        completed_run("twenty", "claim", y=23), completed_run("five", y=8), planned=3, at_least=0.8
    )
    assert row.claim is not None
    assert (row.claim.relations, row.outcome) == ((), UNDECIDED)


def test_the_control_is_not_a_point_of_the_line() -> None:
    row = row_of(
        *line(8, 13, 23), completed_run("five", "control", y=99), at_least=0.8, at_most=1.2
    )
    assert row.outcome == HELD
