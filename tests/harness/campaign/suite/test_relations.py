"""Relations over several runs: held, violated, or too noisy to say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streamquake.harness.campaign.suite.relations import Side, relations_of
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.suite.suite_results import RelationResult, Spread
from tests.harness.campaign.suite.fake_suites import (
    SuiteTestbed,
    claim,
    experiment,
    plan_of,
    testbed,
)

pytestmark = pytest.mark.slow

__all__ = ["testbed"]
HELD, UNDECIDED, VIOLATED = Outcome
FIVE = [1.0, 1.1, 1.2, 1.3, 1.4]
TWICE = [2.1, 2.2, 2.5, 2.6, 2.9]


def relation(
    own: Sequence[float | None],
    control: Sequence[float | None] = (),
    level: float = 0.05,
    **bound: float,
) -> RelationResult:
    source = claim("a", "b", relations=({"figure": "c.x", **bound},))
    sides = {
        name: Side(runs=len(values), figures={"c.x": Spread.of(values)})
        for name, values in (("claim", own), ("control", control))
    }
    (found,) = relations_of(source, sides, level)
    return found


@pytest.mark.parametrize(
    ("own", "control", "problem"),
    [
        ([9.0, None, None, None, None], (), "4 of 5 runs of the claim have no such figure"),
        ([1.0] * 5 + [None] * 5, (), "5 of 10 runs of the claim have no such figure"),
        ([1.0] * 5, [9.0] * 4 + [None], "1 of 5 runs of the control have no such figure"),
        ([1.0] * 5, [None] * 5, "the control has no such figure"),
    ],
)
def test_a_run_without_the_figure_is_not_left_out(
    own: list[float | None], control: Sequence[float | None], problem: str
) -> None:
    """Its job may never have recovered, for example."""
    bound = {"control_over_claim_at_least": 2.0} if control else {"claim_at_most": 10.0}
    found = relation(own, control, **bound)
    assert found.outcome == UNDECIDED
    assert problem in found.text


@pytest.mark.parametrize(
    ("bound", "outcome"),
    [
        ({"claim_at_most": 1.4}, HELD),
        ({"claim_at_least": 1.0}, HELD),
        ({"claim_at_most": 0.9}, VIOLATED),
        ({"claim_at_least": 1.5}, VIOLATED),
        ({"claim_at_most": 1.3}, UNDECIDED),
        ({"claim_at_least": 1.25}, UNDECIDED),
        ({"control_at_least": 2}, HELD),
        ({"control_at_most": 2}, VIOLATED),
        ({"control_over_claim_at_least": 1.4}, HELD),
        ({"control_over_claim_at_least": 2}, UNDECIDED),
        ({"control_over_claim_at_least": 4}, VIOLATED),
        ({"claim_over_control_at_least": 1}, VIOLATED),
    ],
)
def test_a_bound_over_five_runs(bound: dict[str, float], outcome: Outcome) -> None:
    found = relation(FIVE, TWICE, **bound)
    assert found.outcome == outcome, found.text
    assert found.p is not None
    assert (found.p <= 0.05) == (outcome != UNDECIDED)


def test_the_text_has_the_interval_the_bound_and_what_would_tell() -> None:
    text = relation(FIVE, TWICE, control_over_claim_at_least=1.4).text
    assert text.startswith("c.x: control over claim is 2.083 (1.615 to 2.6)")
    assert ", wanted at least 1.4 (p 0.004)" in text
    text = relation(FIVE, claim_at_most=1.3).text
    assert text.startswith("c.x: claim is 1.2 (1 to 1.4), wanted at most 1.3: too noisy to say")
    assert text.endswith("with 5 runs, about 18 each would probably tell")
    text = relation([1, 3, 1, 3], claim_at_most=2).text
    assert text.endswith("with 4 runs, more than 1,000 each would probably tell")


def test_a_single_run_on_each_side_is_not_tested() -> None:
    found = relation([1.0], [2.0], control_over_claim_at_least=1.5)
    assert (found.outcome, found.p) == (HELD, None)
    assert found.text == "c.x: control over claim is 2, wanted at least 1.5"
    assert relation([1.0], [2.0], control_over_claim_at_least=2.5).outcome == VIOLATED


def test_a_single_run_against_several_is_too_few() -> None:
    found = relation([1.0], TWICE, control_over_claim_at_least=1.5)
    assert found.outcome == UNDECIDED
    assert "with 5 and 1 runs" in found.text


def test_the_level_is_that_of_the_suite() -> None:
    assert relation(FIVE, claim_at_most=1.4, level=0.03).outcome == UNDECIDED
    assert relation(FIVE, claim_at_most=1.4, level=0.0313).outcome == HELD


def test_a_divisor_of_zero() -> None:
    found = relation([0.0] * 5, TWICE, control_over_claim_at_least=10)
    assert found.outcome == HELD
    assert "is infinite, since the divisor is 0" in found.text
    assert (
        "neither is above 0" in relation([0.0] * 5, [0.0] * 5, control_over_claim_at_least=1).text
    )


def suite_of(testbed: SuiteTestbed, decided: int, open_ones: int) -> list[tuple[str, bool]]:
    """A suite of claims with five runs each, of which some are far from their bound and others at
    it: the outcome of each row, and whether its reason is the number of runs."""
    names = [f"row{number}" for number in range(decided + open_ones)]
    rows = []
    for number, name in enumerate(names):
        testbed.counts[name] = [1.0] * 5 if number < decided else [1.0, 9.0, 1.0, 9.0, 1.0]
        bound = {"figure": "measure.took_ms", "claim_at_most": 2}
        rows.append((claim(name, relations=(bound,)), [experiment(name)]))
    results, _ = testbed.run_suite(plan_of(*rows, repeats=5))
    return [(row.outcome_word, "too noisy" in row.why) for row in results.rows]


def test_the_tests_of_a_suite_are_corrected_together(testbed: SuiteTestbed) -> None:
    assert suite_of(testbed, 3, 1) == [("held", False)] * 3 + [("too noisy to say", True)]


def test_one_finding_among_many_tests_may_be_chance(testbed: SuiteTestbed) -> None:
    assert suite_of(testbed, 1, 2) == [("too noisy to say", True)] * 3
