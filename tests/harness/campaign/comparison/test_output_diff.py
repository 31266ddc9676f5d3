"""Outputs of two runs, compared by value: each kind of difference found, and none where none is."""

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
def cluster_leases(spark: SparkSession, tmp_path: Path) -> tuple[Testbed, Testbed]:
    return Testbed(spark, tmp_path / "one"), Testbed(spark, tmp_path / "two")


def compared(cluster_leases: tuple[Testbed, Testbed], *outcomes: Outcome) -> OutputDifference:
    first, second = (
        run(name, o) for name, o in zip("ab", outcomes or [Outcome.HELD] * 2, strict=True)
    )
    return between(first, cluster_leases[0].case(), second, cluster_leases[1].case())


def between(
    first: ComparedRun, case: JudgedRun, second: ComparedRun, other: JudgedRun
) -> OutputDifference:
    (found,) = differences((first, case), (second, other))
    return found


def steered(at_record: int, disturbance: str, **parameters: float) -> History:
    """The usual run, its load steered from this record on."""
    change = {"at_record": at_record, "disturbance": disturbance, "parameters": parameters}
    recorded = Story().at(0.5, Action.WORKLOAD_STEERED, **change).sent(1, len(RECORDS))
    return recorded.at(3, Action.WORKLOAD_DONE, acknowledged=400, failed=0, unknown=0).history()


def test_the_same_records_in_another_order_are_no_difference(
    cluster_leases: tuple[Testbed, Testbed],
) -> None:
    cluster_leases[0].topic("copy", values(RECORDS))
    cluster_leases[1].topic("copy", values(RECORDS[::-1]))
    found = compared(cluster_leases)
    assert (found.missing, found.added, found.changed) == (0, 0, 0)
    assert (found.output, found.first, found.other, found.outcome) == (
        "copy",
        "a",
        "b",
        Outcome.HELD,
    )


def test_each_kind_of_difference_is_counted(cluster_leases: tuple[Testbed, Testbed]) -> None:
    other = [record._replace(amount=record.amount + 1) for record in RECORDS[3:5]] + RECORDS[5:]
    cluster_leases[0].topic("copy", [*values(RECORDS[1:]), "no json"])
    cluster_leases[1].topic("copy", [*values(RECORDS[:1] + other), "neither is this", "nor this"])
    found = compared(cluster_leases)
    assert (found.missing, found.added, found.changed) == (3, 3, 2)
    assert found.outcome == Outcome.VIOLATED


def test_of_a_changelog_what_stands_is_compared(cluster_leases: tuple[Testbed, Testbed]) -> None:
    """One run got there by way of another state, and the other was told at once."""
    old = RECORDS[7]._replace(amount=-1)
    cluster_leases[0].topic("copy", [*changes(old, *RECORDS), *changes(old, back=True)])
    cluster_leases[1].topic("copy", changes(*RECORDS))
    promise = JobPromise(outputs={"copy": CHANGELOG}, expected="SELECT * FROM sent")
    cases = [dataset.case(promise) for dataset in cluster_leases]
    found = between(run("a"), cases[0], run("b"), cases[1])
    assert (found.missing, found.added, found.changed, found.outcome) == (0, 0, 0, Outcome.HELD)


def test_only_outputs_proven_exactly_once_must_be_the_same(
    cluster_leases: tuple[Testbed, Testbed],
) -> None:
    cluster_leases[0].topic("copy", values(RECORDS))
    cluster_leases[1].topic("copy", values(RECORDS[:-1]))
    found = compared(cluster_leases, Outcome.HELD, Outcome.VIOLATED)
    assert (found.missing, found.outcome) == (1, None)
    assert "one of the runs is not proven exactly-once" in found.why


def test_what_was_not_read_is_not_the_same(cluster_leases: tuple[Testbed, Testbed]) -> None:
    cluster_leases[0].topic("copy", values(RECORDS))
    found = compared(cluster_leases)
    assert (found.missing, found.outcome) == (None, Outcome.UNDECIDED)
    assert "it was not read on" in found.why


def test_runs_that_were_given_other_records_are_not_compared(
    cluster_leases: tuple[Testbed, Testbed],
) -> None:
    """Skew that began at another record gives other keys; a surge changes the pace alone."""
    for dataset in cluster_leases:
        dataset.topic("copy", values(RECORDS))
    skewed = [
        dataset.case(history=steered(at, "skew", hot_share=0.7))
        for dataset, at in zip(cluster_leases, (100, 101), strict=True)
    ]
    found = between(run("a"), skewed[0], run("b"), skewed[1])
    assert (found.missing, found.outcome) == (None, Outcome.UNDECIDED)
    assert "did not have the same input records" in found.why

    faster = [
        dataset.case(history=steered(at, "surge", factor=2))
        for dataset, at in zip(cluster_leases, (100, 101), strict=True)
    ]
    assert between(run("a"), faster[0], run("b"), faster[1]).outcome == Outcome.HELD
