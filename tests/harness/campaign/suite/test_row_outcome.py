"""What a row comes to, by its runs, its figures and the bounds on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.suite.loader import Row
from streamquake.harness.campaign.suite.model import RowSource
from streamquake.harness.campaign.suite.row_outcome import row_result
from streamquake.harness.campaign.suite.suite_run import CompletedRun, figure_of
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.suite.suite_results import Role, RowResult, Spread, SuiteRun
from tests.harness.campaign.suite.acting import claim

HELD, UNDECIDED, VIOLATED = Outcome


def made(
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
    run = SuiteRun(
        experiment=role,
        role=role,
        repeat=repeat,
        seed=0,
        expected=results.expected,
        met=results.met,
        run="r",
        ended=ended,
        outcome=outcome,
        why="because",
    )
    return CompletedRun(run=run, results=results)


def judged(*runs: CompletedRun, planned: int = 0, **bounds: float) -> RowResult:
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


def test_a_claim_holds_when_all_is_as_expected() -> None:
    row = judged(made("claim"), made("control", VIOLATED, expected=VIOLATED))
    assert (row.outcome, row.as_expected) == (HELD, True)


@pytest.mark.parametrize(
    ("other", "outcome", "messages"),
    [
        (made("claim", VIOLATED), VIOLATED, "claim was violated, but held was expected"),
        (made("control", HELD, expected=VIOLATED), VIOLATED, "but violated was expected"),
        (made("control", UNDECIDED), UNDECIDED, "control: because"),
        (made("control", UNDECIDED, ended="failed_to_run"), UNDECIDED, "control: because"),
        (made("control", UNDECIDED, expected=VIOLATED), UNDECIDED, "control: because"),
        (
            made("control", UNDECIDED, expected=UNDECIDED, ended="failed_to_run"),
            UNDECIDED,
            "control: because",
        ),
    ],
)
def test_one_run_that_is_not_as_expected_decides(
    other: CompletedRun, outcome: Outcome, messages: str
) -> None:
    row = judged(made("claim"), made("control"), other)
    assert (row.outcome, row.as_expected) == (outcome, False)
    assert messages in row.why


@pytest.mark.parametrize("came", [(HELD, HELD), (HELD, UNDECIDED)])
def test_a_row_shows_the_worst_of_the_outcomes_that_came(came: tuple[Outcome, ...]) -> None:
    """Not the worst of those that its experiment allows."""
    expected = ExpectedOutcome.of({"c": ("held", "undecided")})
    runs = []
    for outcome in came:
        one = made("claim", outcome)
        assert one.results is not None
        results = replace(one.results, expected=expected)
        runs.append(
            CompletedRun(run=replace(one.run, expected=expected, met=results.met), results=results)
        )
    source = RowSource.model_validate({"experiment": "claim"})
    row = Row(source=source, experiment=Path("a"), control=None, names=("claim",))
    shown = row_result(row, topology="t", expected=expected, planned=2, completed=runs)
    assert (shown.outcome, shown.as_expected) == (max(came), True)


def test_a_violated_run_outranks_an_undecided_one() -> None:
    assert judged(made("claim", UNDECIDED), made("control", VIOLATED)).outcome == VIOLATED


def test_runs_that_were_not_made_leave_the_claim_open() -> None:
    assert judged().outcome is None
    row = judged(made("claim"), planned=2)
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
    row = judged(made("claim", value=own), made("control", value=control), **bounds)
    assert row.outcome == outcome, row.why
    assert row.claim is not None
    assert max(each.outcome for each in row.claim.relations) == outcome


def test_a_quotient_by_none_is_told_in_words() -> None:
    bound = {"control_over_claim_at_least": 10}
    row = judged(made("claim", value=0), made("control", value=40), **bound)
    assert row.claim is not None
    (relation,) = row.claim.relations
    assert "is infinite, since the divisor is 0, wanted at least 10" in relation.text


def test_bounds_are_on_the_median_of_the_repeats_that_came_to_their_end() -> None:
    runs = [made("claim", value=value, repeat=n) for n, value in enumerate((9.0, 1.0, 2.0))]
    row = judged(*runs, made("control"), claim_at_most=2)
    assert row.outcome == HELD
    assert row.figures["c.x"] == Spread(n=3, median=2, low=1, high=9, values=(9, 1, 2))
    cut_off = made("claim", UNDECIDED, value=99.0, ended="interrupted")
    assert judged(*runs, cut_off).figures["c.x"] == row.figures["c.x"]


def test_bounds_are_not_judged_before_all_has_run() -> None:
    row = judged(made("claim", value=9), planned=2, claim_at_most=2)
    assert row.claim is not None
    assert (row.claim.relations, row.outcome) == ((), UNDECIDED)


def test_a_relation_cannot_make_a_failed_run_held() -> None:
    assert judged(made("claim", VIOLATED, value=1), made("control"), claim_at_most=2).outcome == (
        VIOLATED
    )


def test_figures_come_from_checks_and_from_the_recovery() -> None:
    results = made("claim", value=3).results
    assert figure_of(results, "c.x") == 3
    assert figure_of(results, "recovery.restarted_s") == 2.5
    assert figure_of(results, "c.y") is None
    assert figure_of(results, "d.x") is None
    assert figure_of(None, "c.x") is None
