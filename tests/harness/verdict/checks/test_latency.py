"""`latency` on outputs with stamps and samples of stable ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Job
from streamquake.harness.verdict.checks.latency import Latency
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Metrics
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


def late(by_s: float, since_s: float = 0.0, until_s: float = 99.0) -> list[OutputRecord]:
    def delayed(out: OutputRecord) -> Iterable[OutputRecord]:
        affected = since_s <= out.at_s < until_s
        return [out._replace(at_s=out.at_s + by_s) if affected else out]

    return changed(delayed)


def committed_every(seconds: float, written: list[OutputRecord], path: Path) -> Path:
    """Samples of the stable ends five times a second: they move as transactions are committed."""
    metrics = Metrics(path)
    for tick in range(1, 200):
        at_s = tick / 5
        for partition in range(4):
            until_s = at_s // seconds * seconds
            end = sum(out.partition == partition and out.at_s < until_s for out in written)
            metrics.add(round(at_s * 1e9), "stable_end", f"totals/{partition}", end)
    metrics.flush()
    return path


def judged(
    spark: SparkSession,
    data: Path,
    written: list[OutputRecord],
    reported: Story | None = None,
    *,
    every_s: float | None = 4.0,
    job: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
    p50_within_s: float = 3.0,
) -> CheckResult:
    case = judged_case(spark, data, written, reported, **(facts or {}))
    if every_s is not None:
        case = replace(case, metrics=committed_every(every_s, written, data / "metrics.parquet"))
    return Latency(p50_within_s=p50_within_s).check(changed_job(case, **(job or {})))


def changed_job(case: JudgedRun, **fields: Any) -> JudgedRun:
    assert case.experiment.job is not None
    job: Job = case.experiment.job.model_copy(update=fields)
    return replace(case, experiment=case.experiment.model_copy(update={"job": job}))


def test_readers_of_committed_records_wait_for_half_the_interval(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judged(spark, tmp_path, late(1.0))

    assert result.outcome == Outcome.HELD
    counts = result.counts
    assert (counts["records"], counts["committed"]) == (2000, 2000)
    # Each record was written 50 ms after its send, plus a second.
    assert 1040 <= (counts["p50_ms"] or 0) <= 1060
    assert 1000 <= (counts["max_ms"] or 0) <= 1060
    assert 2000 < (counts["committed_p50_ms"] or 0) < 3000
    assert 4000 < (counts["committed_max_ms"] or 0) < 5000
    assert "could be read as committed 2." in result.summary


def test_a_longer_interval_is_violated(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, late(1.0), every_s=10.0)
    assert result.outcome == Outcome.VIOLATED
    assert 5000 < (result.counts["committed_p50_ms"] or 0) < 6500
    assert [finding.what for finding in result.findings] == ["late"]
    # For a reader of uncommitted records nothing changes.
    assert 1040 <= (result.counts["p50_ms"] or 0) <= 1060


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("limit_s", "outcome"),
    [(9.0, Outcome.VIOLATED), (10.2, Outcome.UNDECIDED), (21.0, Outcome.HELD)],
)
def test_both_ends_of_a_hole_of_the_samples_count(
    spark: SparkSession, tmp_path: Path, limit_s: float, outcome: Outcome
) -> None:
    """All became readable between the samples at 20 s and at 30 s: half of them within 10 s at
    best, and within 20 s."""
    case = judged_case(spark, tmp_path, written_records())
    metrics = Metrics(tmp_path / "metrics.parquet")
    for at_s, end in ((1, 0), (20, 0), (30, 500)):
        for partition in range(4):
            metrics.add(at_s * 10**9, "stable_end", f"totals/{partition}", end)
    metrics.flush()

    result = Latency(p50_within_s=limit_s).check(
        replace(case, metrics=tmp_path / "metrics.parquet")
    )
    assert result.outcome == outcome, result.summary


@pytest.mark.nightly
def test_without_transactions_written_records_can_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judged(spark, tmp_path, late(1.0), every_s=None, job={"sink": "at-least-once"})
    assert result.outcome == Outcome.HELD
    assert result.counts["committed_p50_ms"] == result.counts["p50_ms"]


@pytest.mark.nightly
def test_a_send_may_be_noted_a_little_late(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, late(-0.5))
    assert (result.outcome, result.counts["p50_ms"]) == (Outcome.HELD, 0)


@pytest.mark.nightly
def test_the_cost_of_a_failure_is_the_longest_latency_minus_the_usual(
    spark: SparkSession, tmp_path: Path
) -> None:
    waited = late(4.0, since_s=10.0, until_s=10.5)
    result = judged(spark, tmp_path / "a", waited)
    assert 3500 < (result.counts["failure_cost_ms"] or 0) < 4100
    undisturbed = judged(spark, tmp_path / "b", waited, loads(Story()))
    assert undisturbed.counts["failure_cost_ms"] is None


@pytest.mark.nightly
def test_the_first_of_several_copies_counts(spark: SparkSession, tmp_path: Path) -> None:
    def twice(out: OutputRecord) -> Iterable[OutputRecord]:
        return [out, out._replace(at_s=out.at_s + 8.0)]

    result = judged(spark, tmp_path, changed(twice), job={"sink": "at-least-once"})
    assert result.counts["records"] == 2000
    assert (result.counts["max_ms"] or 0) < 100


@pytest.mark.nightly
def test_sends_before_the_steady_state_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    slow_start = late(6.0, until_s=3.0)
    whole = judged(spark, tmp_path / "a", slow_start)
    steady = judged(
        spark, tmp_path / "b", slow_start, story().at(4.0, Action.PHASE, phase="disturb")
    )
    assert (whole.counts["max_ms"] or 0) > 5000
    assert (steady.counts["max_ms"] or 0) < 100
    assert steady.counts["records"] == 1650


def few() -> Story:
    """Only the last range was sent in the steady state."""
    return story().at(19.8, Action.PHASE, phase="disturb")


def undrained() -> Story:
    """Missing records may have arrived after the end of the run."""
    return injected(loads(Story())).at(20.0, Action.FAULT_HEALED, step=0)


def test_records_that_never_arrived_are_infinitely_late(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A tenth of the sent records was written at once; the others never."""
    first = [out for out in written_records() if out.record.index % 10 == 0]
    result = judged(spark, tmp_path / "a", first)
    assert result.outcome == Outcome.VIOLATED, result.summary
    assert "1,800 of 2,000 never arrived" in result.summary
    assert (result.counts["records"], result.counts["never_came"]) == (200, 1800)
    assert (result.counts["committed_p50_ms"], result.counts["failure_cost_ms"]) == (None, None)
    most = [out for out in written_records() if out.record.index % 10 != 0]
    result = judged(spark, tmp_path / "b", most)
    assert result.outcome == Outcome.HELD, result.summary
    assert "200 of 2,000 never arrived" in result.summary
    assert result.counts["max_ms"] is None, "the longest time is infinite"


def test_an_output_without_an_expectation_is_undecided(spark: SparkSession, tmp_path: Path) -> None:
    case = judged_case(spark, tmp_path, written_records())
    assert case.experiment.job is not None
    promise = case.experiment.job.promise.model_copy(update={"expected": None})
    result = Latency(p50_within_s=3).check(changed_job(case, promise=promise, sink="at-least-once"))
    assert result.outcome == Outcome.UNDECIDED
    assert "its expected records are not known" in result.summary


@pytest.mark.nightly_after(3)
@pytest.mark.parametrize(
    ("written", "reported", "change", "message"),
    [
        (written_records(), Story().effect(10.0), {}, "nothing was sent"),
        (written_records(), story(), {"facts": {"stamped": "create"}}, "set by the producer"),
        (written_records(), story(), {"every_s": None}, "its stable ends were not sampled"),
        (written_records(), few(), {}, "50 records were sent once the system was steady"),
        (written_records(), story(), {"every_s": 90.0}, "of 2,000 records it is not known"),
        (late(-5.0), story(), {}, "so the clock of a broker differs from that of this machine"),
        (
            written_records()[:200],
            undrained(),
            {"p50_within_s": 30},
            "were not seen to become readable",
        ),
    ],
)
def test_too_little_evidence_is_undecided(
    spark: SparkSession,
    tmp_path: Path,
    written: list[OutputRecord],
    reported: Story,
    change: dict[str, Any],
    message: str,
) -> None:
    result = judged(spark, tmp_path, written, reported, **change)
    assert (result.outcome, message in result.summary) == (Outcome.UNDECIDED, True), result.summary


def test_records_that_cannot_be_traced_are_undecided(spark: SparkSession, tmp_path: Path) -> None:
    case = judged_case(spark, tmp_path, written_records())
    assert case.experiment.job is not None
    promise = case.experiment.job.promise
    other = promise.outputs["totals"].model_copy(update={"identity": ("window",)})
    changed_promise = promise.model_copy(update={"outputs": {"totals": other}})
    result = Latency(p50_within_s=3).check(changed_job(case, promise=changed_promise))
    assert result.outcome == Outcome.UNDECIDED
    assert "identified by window" in result.summary
