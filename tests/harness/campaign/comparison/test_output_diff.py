"""Outputs of two runs, compared by value: each kind of difference is counted, and equal outputs
have none."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.campaign.comparison.output_diff import differences
from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.outputs import JobPromise
from streamquake.reports.comparison.comparison_results import ComparedRun, OutputDifference
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Results
from tests.harness.histories import Story
from tests.harness.verdict.checks.test_exactly_once import (
    CHANGELOG,
    RECORDS,
    Testbed,
    changes,
    values,
)


def run(topology: str, outcome: Outcome = Outcome.HELD) -> ComparedRun:
    check = CheckResult(check="exactly_once", outcome=outcome, summary="", counts={})
    results = Results(
        run_id=topology, experiment="e", seed=1, ended="completed", outcome=outcome, checks=(check,)
    )
    return ComparedRun(topology=topology, results=results, why="")


@pytest.fixture
def testbeds(spark: SparkSession, tmp_path: Path) -> tuple[Testbed, Testbed]:
    return Testbed(spark, tmp_path / "one"), Testbed(spark, tmp_path / "two")


def compare(testbeds: tuple[Testbed, Testbed], *outcomes: Outcome) -> OutputDifference:
    first, second = (
        run(name, o) for name, o in zip("ab", outcomes or [Outcome.HELD] * 2, strict=True)
    )
    return compare_runs(first, testbeds[0].case(), second, testbeds[1].case())


def compare_runs(
    first: ComparedRun, case: JudgedRun, second: ComparedRun, other: JudgedRun
) -> OutputDifference:
    (found,) = differences((first, case), (second, other))
    return found


def with_load_fault(at_record: int, disturbance: str, **parameters: float) -> History:
    """The usual run, whose load a fault changes from this record on."""
    change = {"at_record": at_record, "disturbance": disturbance, "parameters": parameters}
    recorded = Story().at(0.5, Action.WORKLOAD_STEERED, **change).sent(1, len(RECORDS))
    return recorded.at(3, Action.WORKLOAD_DONE, acknowledged=400, failed=0, unknown=0).history()


@pytest.mark.nightly
def test_the_same_records_in_another_order_are_no_difference(
    testbeds: tuple[Testbed, Testbed],
) -> None:
    testbeds[0].topic("copy", values(RECORDS))
    testbeds[1].topic("copy", values(RECORDS[::-1]))
    found = compare(testbeds)
    assert (found.missing, found.added, found.changed) == (0, 0, 0)
    assert (found.output, found.first, found.other, found.outcome) == (
        "copy",
        "a",
        "b",
        Outcome.HELD,
    )


def test_each_kind_of_difference_is_counted(testbeds: tuple[Testbed, Testbed]) -> None:
    other = [record._replace(amount=record.amount + 1) for record in RECORDS[3:5]] + RECORDS[5:]
    testbeds[0].topic("copy", [*values(RECORDS[1:]), "no json"])
    testbeds[1].topic("copy", [*values(RECORDS[:1] + other), "neither is this", "nor this"])
    found = compare(testbeds)
    assert (found.missing, found.added, found.changed) == (3, 3, 2)
    assert found.outcome == Outcome.VIOLATED


@pytest.mark.nightly
def test_the_final_state_of_a_changelog_is_compared(testbeds: tuple[Testbed, Testbed]) -> None:
    """One run reached the final state by way of another state, the other directly."""
    old = RECORDS[7]._replace(amount=-1)
    testbeds[0].topic("copy", [*changes(old, *RECORDS), *changes(old, back=True)])
    testbeds[1].topic("copy", changes(*RECORDS))
    promise = JobPromise(outputs={"copy": CHANGELOG}, expected="SELECT * FROM sent")
    cases = [testbed.case(promise) for testbed in testbeds]
    found = compare_runs(run("a"), cases[0], run("b"), cases[1])
    assert (found.missing, found.added, found.changed, found.outcome) == (0, 0, 0, Outcome.HELD)


@pytest.mark.nightly
def test_only_outputs_proven_exactly_once_must_be_equal(
    testbeds: tuple[Testbed, Testbed],
) -> None:
    testbeds[0].topic("copy", values(RECORDS))
    testbeds[1].topic("copy", values(RECORDS[:-1]))
    found = compare(testbeds, Outcome.HELD, Outcome.VIOLATED)
    assert (found.missing, found.outcome) == (1, None)
    assert "one of the runs is not proven exactly-once" in found.why


def test_an_output_that_was_not_read_is_undecided(testbeds: tuple[Testbed, Testbed]) -> None:
    testbeds[0].topic("copy", values(RECORDS))
    found = compare(testbeds)
    assert (found.missing, found.outcome) == (None, Outcome.UNDECIDED)
    assert "it was not read on" in found.why


@pytest.mark.nightly
def test_runs_with_different_input_records_are_not_compared(
    testbeds: tuple[Testbed, Testbed],
) -> None:
    """A skew that begins at another record changes the keys; a surge changes only the rate."""
    for testbed in testbeds:
        testbed.topic("copy", values(RECORDS))
    skewed = [
        testbed.case(history=with_load_fault(at, "skew", hot_share=0.7))
        for testbed, at in zip(testbeds, (100, 101), strict=True)
    ]
    found = compare_runs(run("a"), skewed[0], run("b"), skewed[1])
    assert (found.missing, found.outcome) == (None, Outcome.UNDECIDED)
    assert "did not have the same input records" in found.why

    faster = [
        testbed.case(history=with_load_fault(at, "surge", factor=2))
        for testbed, at in zip(testbeds, (100, 101), strict=True)
    ]
    assert compare_runs(run("a"), faster[0], run("b"), faster[1]).outcome == Outcome.HELD
