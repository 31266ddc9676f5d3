"""The outcome of a row, from its runs, its figures and the bounds on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.suite.loader import Row
from streamquake.harness.campaign.suite.model import RowSource
from streamquake.harness.campaign.suite.row_outcome import row_result, spread_of
from streamquake.harness.campaign.suite.suite_run import CompletedRun, figure_of
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.suite.suite_results import Role, RowResult, Spread
from tests.harness.campaign.suite.fake_suites import claim
from tests.reports.suite_runs import suite_run

HELD, UNDECIDED, VIOLATED = Outcome


def completed_run(
    role: Role,
    outcome: Outcome = HELD,
    *,
    expected: Outcome = HELD,
    value: float | None = None,
    ended: Ended = "completed",
    repeat: int = 0,
) -> CompletedRun:
    check = CheckResult(check="c", outcome=outcome, summary="", counts={"x": value})
    results = Results(
        run_id="r",
        experiment=role,
        seed=0,
        ended=ended,
        outcome=outcome,
        checks=(check,),
        recovery={"restarted_s": 2.5},
        expected=ExpectedOutcome(outcome=expected),
    )
    run = suite_run(
        experiment=role,
        role=role,
        repeat=repeat,
        expected=results.expected,
        met=results.met,
        ended=ended,
        outcome=outcome,
        why="because",
    )
    return CompletedRun(run=run, results=results)


def row_of(*runs: CompletedRun, planned: int = 0, **bounds: float) -> RowResult:
    relations: tuple[Any, ...] = ({"figure": "c.x", **bounds},) if bounds else ()
    source = claim("claim", "control", figures=("c.x",), relations=relations)
    row = Row(source=source, experiment=Path("a"), control=Path("b"), names=("claim", "control"))
    return row_result(
        row,
        topology="t",
        expected=ExpectedOutcome(),
        planned=planned or len(runs) or 2,
        completed=runs,
    )


def test_a_claim_holds_when_every_run_is_as_expected() -> None:
    row = row_of(completed_run("claim"), completed_run("control", VIOLATED, expected=VIOLATED))
    assert (row.outcome, row.as_expected) == (HELD, True)


@pytest.mark.parametrize(
    ("other", "outcome", "message"),
    [
        (completed_run("claim", VIOLATED), VIOLATED, "claim was violated, but held was expected"),
        (completed_run("control", HELD, expected=VIOLATED), VIOLATED, "but violated was expected"),
        (completed_run("control", UNDECIDED), UNDECIDED, "control: because"),
        (completed_run("control", UNDECIDED, ended="failed_to_run"), UNDECIDED, "control: because"),
        (completed_run("control", UNDECIDED, expected=VIOLATED), UNDECIDED, "control: because"),
        (
            completed_run("control", UNDECIDED, expected=UNDECIDED, ended="failed_to_run"),
            UNDECIDED,
            "control: because",
        ),
    ],
)
def test_one_unexpected_run_decides_the_row(
    other: CompletedRun, outcome: Outcome, message: str
) -> None:
    row = row_of(completed_run("claim"), completed_run("control"), other)
    assert (row.outcome, row.as_expected) == (outcome, False)
    assert message in row.why


@pytest.mark.parametrize("outcomes", [(HELD, HELD), (HELD, UNDECIDED)])
def test_a_row_has_the_worst_outcome_of_its_runs(outcomes: tuple[Outcome, ...]) -> None:
    """It is not the worst outcome that its experiment allows."""
    expected = ExpectedOutcome.of({"c": ("held", "undecided")})
    runs = []
    for outcome in outcomes:
        one = completed_run("claim", outcome)
        assert one.results is not None
        results = replace(one.results, expected=expected)
        runs.append(
            CompletedRun(run=replace(one.run, expected=expected, met=results.met), results=results)
        )
    source = RowSource.model_validate({"experiment": "claim"})
    row = Row(source=source, experiment=Path("a"), control=None, names=("claim",))
    shown = row_result(row, topology="t", expected=expected, planned=2, completed=runs)
    assert (shown.outcome, shown.as_expected) == (max(outcomes), True)


def test_a_violated_run_decides_before_an_undecided_one() -> None:
    assert (
        row_of(completed_run("claim", UNDECIDED), completed_run("control", VIOLATED)).outcome
        == VIOLATED
    )


def test_a_claim_with_missing_runs_is_undecided() -> None:
    assert row_of().outcome is None
    row = row_of(completed_run("claim"), planned=2)
    assert (row.outcome, row.why) == (UNDECIDED, "1 of 2 runs completed")


@pytest.mark.parametrize(
    ("own", "control", "bounds", "outcome"),
    [
        (4, 40, {"control_over_claim_at_least": 10}, HELD),
        (4, 39, {"control_over_claim_at_least": 10}, VIOLATED),
        (0, 40, {"control_over_claim_at_least": 10}, HELD),
        (0, 0, {"control_over_claim_at_least": 10}, UNDECIDED),
        (-3, 40, {"control_over_claim_at_least": 10}, HELD),
        (-3, -40, {"control_over_claim_at_least": 10}, UNDECIDED),
        (None, 40, {"control_over_claim_at_least": 10}, UNDECIDED),
        (4, None, {"control_over_claim_at_least": 10}, UNDECIDED),
        (40, 4, {"claim_over_control_at_least": 10}, HELD),
        (1, None, {"claim_at_least": 1}, HELD),
        (0, None, {"claim_at_least": 1}, VIOLATED),
        (0, 1, {"claim_at_most": 0, "control_at_least": 1}, HELD),
        (0, 0, {"claim_at_most": 0, "control_at_least": 1}, VIOLATED),
        (1, 9, {"control_at_most": 9}, HELD),
        (1, 10, {"control_at_most": 9}, VIOLATED),
    ],
)
def test_bounds_on_figures(
    own: float | None, control: float | None, bounds: dict[str, Any], outcome: Outcome
) -> None:
    row = row_of(
        completed_run("claim", value=own), completed_run("control", value=control), **bounds
    )
    assert row.outcome == outcome, row.why
    assert row.claim is not None
    assert max(each.outcome for each in row.claim.relations) == outcome


def test_a_ratio_with_divisor_zero_is_infinite() -> None:
    bound = {"control_over_claim_at_least": 10}
    row = row_of(completed_run("claim", value=0), completed_run("control", value=40), **bound)
    assert row.claim is not None
    (relation,) = row.claim.relations
    assert "is infinite, since the divisor is 0, wanted at least 10" in relation.text


@pytest.mark.parametrize(
    ("values", "interval"),
    [
        ([9.0, 1, 2, 3, 4], None),  # their range has 94 %
        ([9.0, 1, 2, 3, 4, 5], (1, 9)),
        ([9.0, 1, 2, 3, 4, 5, 6, 7], (1, 9)),
        ([9.0, 1, 2, 3, 4, 5, 6, 7, 8], (2, 8)),
        ([9.0, 1, 2, 3, 4, 5, None], (1, 9)),
    ],
)
def test_of_six_repeats_and_more_the_median_has_its_interval(
    values: list[float | None], interval: tuple[float, float] | None
) -> None:
    spread = spread_of(values)
    assert spread is not None
    assert spread.interval == interval
    assert (spread.low, spread.high) == (1, 9)
    assert spread_of([None]) is None


def test_figures_are_of_the_completed_repeats() -> None:
    runs = [
        completed_run("claim", value=value, repeat=n) for n, value in enumerate((9.0, 1.0, 2.0))
    ]
    row = row_of(*runs, completed_run("control"), claim_at_most=2)
    assert row.outcome == UNDECIDED, "two of three runs within a bound may be chance"
    assert row.outcome_word == "too noisy to say"
    assert row.figures["c.x"] == Spread(n=3, median=2, low=1, high=9, values=(9, 1, 2))
    cut_off = completed_run("claim", UNDECIDED, value=99.0, ended="interrupted")
    assert row_of(*runs, cut_off).figures["c.x"] == row.figures["c.x"]


def test_bounds_are_not_judged_before_every_run_is_completed() -> None:
    row = row_of(completed_run("claim", value=9), planned=2, claim_at_most=2)
    assert row.claim is not None
    assert (row.claim.relations, row.outcome) == ((), UNDECIDED)


def test_a_relation_cannot_make_a_failed_run_held() -> None:
    assert row_of(
        completed_run("claim", VIOLATED, value=1), completed_run("control"), claim_at_most=2
    ).outcome == (VIOLATED)


def test_figures_are_those_of_checks_and_of_the_recovery() -> None:
    results = completed_run("claim", value=3).results
    assert figure_of(results, "c.x") == 3
    assert figure_of(results, "recovery.restarted_s") == 2.5
    assert figure_of(results, "c.y") is None
    assert figure_of(results, "d.x") is None
    assert figure_of(None, "c.x") is None
