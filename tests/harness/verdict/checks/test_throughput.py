"""`throughput` on outputs with stamps: the longest outage, and the worst and the best second."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.verdict.checks.throughput import Throughput
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story
from tests.harness.verdict.checks.stamped import (
    OutputRecord,
    changed,
    injected,
    judged_case,
    loads,
    story,
    written_records,
)


def judged(
    spark: SparkSession,
    data: Path,
    written: list[OutputRecord],
    reported: Story | None = None,
    facts: dict[str, Any] | None = None,
    **params: Any,
) -> CheckResult:
    case = judged_case(spark, data, written, reported, **(facts or {}))
    return Throughput(**{"outage_within_s": 5.0, **params}).check(case)


def silent(since_s: float, until_s: float) -> list[OutputRecord]:
    """No output for a while; the held-back records are written together at its end."""

    def held_back(out: OutputRecord) -> Iterable[OutputRecord]:
        return [out._replace(at_s=until_s) if since_s <= out.at_s < until_s else out]

    return changed(held_back)


def test_a_short_outage_is_held_with_figures(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, silent(10.0, 13.0))

    assert result.outcome == Outcome.HELD
    counts = result.counts
    assert counts["usual_per_s"] == 100
    assert 3.0 <= (counts["outage_s"] or 0) <= 3.02
    # From the injection at 9.9 s on: 300 records were written at 13 s, with those of that second.
    assert (counts["least_share"], counts["peak_share"]) == (0.0, 3.9)
    # Of the seven seconds until 5 s after the heal two were empty, and the first had a tenth of the
    # rate.
    assert counts["available_share"] == round(5 / 7, 4)
    assert "3.0 s at most, 5 s allowed" in result.summary


def test_a_long_outage_is_violated_with_when_it_began(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, silent(9.0, 15.0))

    assert result.outcome == Outcome.VIOLATED
    finding = result.findings[0]
    assert (finding.what, finding.where) == ("an outage", "totals")
    # It began before the injection, with the last committed record.
    assert 8.9 < finding.detail["since_s"] < 9.0
    assert 6000 <= finding.detail["gap_ms"] <= 6020


def test_an_output_that_never_resumes_is_out_until_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    arrived = [out for out in written_records() if out.at_s < 11]
    result = judged(spark, tmp_path / "a", arrived)
    assert result.outcome == Outcome.VIOLATED
    assert 6.4 < (result.counts["outage_s"] or 0) < 6.6  # until 5 s after the heal

    # It is within the limit so far, and its full length is unknown.
    result = judged(spark, tmp_path / "b", arrived, outage_within_s=9.5)
    assert result.outcome == Outcome.UNDECIDED
    assert "it had not resumed when the load ended" in result.summary


@pytest.mark.nightly
def test_a_poor_second_is_violated_only_with_a_limit(spark: SparkSession, tmp_path: Path) -> None:
    arrived = silent(10.0, 12.5)
    assert judged(spark, tmp_path / "a", arrived).outcome == Outcome.HELD
    result = judged(spark, tmp_path / "b", arrived, least_share=0.5)
    assert result.outcome == Outcome.VIOLATED
    assert [finding.what for finding in result.findings] == ["a poor second"]
    assert "0% of the usual 100 records, 50% needed" in result.summary
    assert judged(spark, tmp_path / "c", written_records(), least_share=0.5).outcome == Outcome.HELD


def in_batches(batch_s: float, stopped: tuple[float, float] = (0.0, 0.0)) -> list[OutputRecord]:
    """Output in batches, as micro-batches commit it; batches of an outage are written at its
    end."""

    def held_back(out: OutputRecord) -> Iterable[OutputRecord]:
        at_s = ceil(out.at_s / batch_s) * batch_s
        return [out._replace(at_s=stopped[1] if stopped[0] <= at_s < stopped[1] else at_s)]

    return changed(held_back)


@pytest.mark.nightly
def test_output_in_batches_of_seconds_has_an_outage_and_no_share(
    spark: SparkSession, tmp_path: Path
) -> None:
    held = judged(spark, tmp_path / "a", in_batches(3.0))
    assert (held.outcome, held.counts["least_share"]) == (Outcome.HELD, None)
    assert "most seconds before the fault had no output" in held.summary

    stopped = in_batches(3.0, (10.0, 19.5))
    late = judged(spark, tmp_path / "b", stopped)
    assert (late.outcome, [each.what for each in late.findings]) == (
        Outcome.VIOLATED,
        ["an outage"],
    )

    unknown = judged(spark, tmp_path / "c", in_batches(3.0), least_share=0.5)
    assert unknown.outcome == Outcome.UNDECIDED
    assert "there is no share of the usual" in unknown.summary


def silent_twice() -> list[OutputRecord]:
    """As long before the injection as after it."""
    before = silent(2.0, 5.5)
    return sorted(
        (out._replace(at_s=13.5) if 10 <= out.at_s < 13.5 else out for out in before),
        key=lambda out: out.at_s,
    )


@pytest.mark.nightly
def test_a_stutter_before_the_fault_hides_no_long_outage(
    spark: SparkSession, tmp_path: Path
) -> None:
    arrived = [out._replace(at_s=4.5) if 3 <= out.at_s < 4.5 else out for out in silent(10.0, 15.0)]
    result = judged(spark, tmp_path / "a", arrived, outage_within_s=1.0)
    assert result.outcome == Outcome.VIOLATED, result.summary
    assert "5.0 s at most, 1 s allowed" in result.summary
    only = [out._replace(at_s=4.5) if 3 <= out.at_s < 4.5 else out for out in written_records()]
    assert judged(spark, tmp_path / "b", only, outage_within_s=1.0).outcome == Outcome.HELD


def test_a_partition_that_stopped_for_good_is_violated(spark: SparkSession, tmp_path: Path) -> None:
    """The others continue, so the output as a whole never stops."""
    arrived = [out for out in written_records() if out.partition != 2 or out.at_s < 11]
    result = judged(spark, tmp_path / "a", arrived)
    assert result.outcome == Outcome.VIOLATED, result.summary
    assert [(f.what, f.where) for f in result.findings] == [("a partition stopped", "totals: 2")]
    assert result.findings[0].detail["keys"] == 2
    assert "1 of its partitions never resumed" in result.summary


def test_a_partition_with_its_keys_in_others_has_not_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    moved = [
        out._replace(partition=3) if out.partition == 2 and out.at_s >= 11 else out
        for out in written_records()
    ]
    result = judged(spark, tmp_path / "a", moved)
    assert (result.outcome, result.counts["partitions_stopped"]) == (Outcome.HELD, 0)
    # Without a drain, missing records may not be committed yet.
    cut = [out for out in written_records() if out.partition != 2 or out.at_s < 11]
    recorded = injected(loads(Story())).at(12.5, Action.FAULT_HEALED, step=0)
    result = judged(spark, tmp_path / "b", cut, recorded)
    assert (result.outcome, result.counts["partitions_stopped"]) == (Outcome.UNDECIDED, None)
    assert "partition 2 has no record since 11.0 s, and its records may not be" in result.summary


@pytest.mark.nightly
def test_an_output_that_stopped_after_the_interval_is_not_held_before_the_drain(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The interval ends at 17.5 s, the output at 18 s, the load at 20 s."""
    recorded = injected(loads(Story())).at(12.5, Action.FAULT_HEALED, step=0)
    arrived = [out for out in written_records() if out.at_s < 18]
    result = judged(spark, tmp_path, arrived, recorded, outage_within_s=0.5)
    assert (result.outcome, result.counts["partitions_stopped"]) == (Outcome.UNDECIDED, None)
    assert "partition 0 has no record since 18.0 s" in result.summary


def test_the_interval_covers_every_fault(spark: SparkSession, tmp_path: Path) -> None:
    """The output stops only after the second fault, and only briefly after the first."""
    recorded = injected_twice()
    arrived = silent(15.0, 17.5)
    both = judged(spark, tmp_path / "a", arrived, recorded, outage_within_s=2)
    assert both.outcome == Outcome.VIOLATED, both.summary
    first = judged(spark, tmp_path / "b", arrived, recorded, outage_within_s=2, fault="kill")
    assert first.outcome == Outcome.HELD, first.summary
    second = judged(spark, tmp_path / "c", arrived, recorded, outage_within_s=2, fault="pause")
    assert second.outcome == Outcome.VIOLATED, second.summary
    never = judged(spark, tmp_path / "d", arrived, recorded, fault="skew")
    assert (never.outcome, "skew was not in effect" in never.summary) == (Outcome.UNDECIDED, True)


@pytest.mark.nightly
def test_a_fault_that_was_never_over_is_undecided(spark: SparkSession, tmp_path: Path) -> None:
    """The first fault's heal proves nothing about the second."""
    recorded = loads(Story())
    for step, fault, at_s in ((0, "kill", 10.0), (1, "pause", 15.0)):
        recorded.at(
            at_s,
            Action.FAULT_IN_EFFECT,
            step=step,
            fault=fault,
            nodes=[],
            called_ns=round(at_s * 1e9),
            seen_ns=round(at_s * 1e9),
        )
    recorded.at(16.0, Action.FAULT_HEALED, step=0)
    result = judged(spark, tmp_path, written_records(), recorded)
    assert result.outcome == Outcome.UNDECIDED
    assert "the heal of pause (faults[1]) was not seen" in result.summary


def injected_twice() -> Story:
    recorded = loads(Story())
    for step, fault, at_s in ((0, "kill", 10.0), (1, "pause", 15.0)):
        recorded.at(at_s - 0.1, Action.FAULT_CALLED, step=step, fault=fault, target="")
        recorded.at(
            at_s,
            Action.FAULT_IN_EFFECT,
            step=step,
            fault=fault,
            nodes=[],
            called_ns=round((at_s - 0.1) * 1e9),
            seen_ns=round(at_s * 1e9),
        )
        recorded.at(at_s + 1, Action.FAULT_HEALED, step=step)
    return recorded.at(25.0, Action.DRAINED)


@pytest.mark.nightly_after(3)
@pytest.mark.parametrize(
    ("written", "reported", "facts", "message"),
    [
        (written_records(), loads(Story()), {}, "no fault took effect"),
        (written_records(), story(), {"stamped": "create"}, "set by the producer"),
        ([], story(), {}, "no record was written"),
        (
            [out for out in written_records() if out.at_s > 6],
            story(),
            {},
            "3 whole seconds before the fault",
        ),
        (silent_twice(), story(), {}, "already before the fault it stopped for 3.5 s"),
    ],
)
def test_too_little_evidence_is_undecided(
    spark: SparkSession,
    tmp_path: Path,
    written: list[OutputRecord],
    reported: Story,
    facts: dict[str, Any],
    message: str,
) -> None:
    result = judged(spark, tmp_path, written, reported, facts, outage_within_s=3.0)
    assert (result.outcome, message in result.summary) == (Outcome.UNDECIDED, True), result.summary


@pytest.mark.nightly
def test_a_load_that_ended_with_the_injection_is_undecided(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judged(
        spark,
        tmp_path,
        written_records(),
        injected(loads(Story()), 19.5).at(22, Action.FAULT_HEALED, step=0),
    )
    assert result.outcome == Outcome.UNDECIDED
    assert "the load ended 0.6 s after the fault was injected" in result.summary
