"""`continuity` on outputs with stamps: one key's pause made longer changes the outcome."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.verdict.checks.continuity import Continuity
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story
from tests.harness.verdict.checks.stamped import (
    OutputRecord,
    bucket_key,
    changed,
    injected,
    judged_case,
    loads,
    number,
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
    return Continuity(**{"within_s": 2.0, **params}).check(case)


def late(until_s: float, partition: int = 1) -> list[OutputRecord]:
    """Records of one partition sent after the injection are written no sooner than this."""

    def held_back(out: OutputRecord) -> Iterable[OutputRecord]:
        waits = out.partition == partition and 10 <= out.at_s < until_s
        return [out._replace(at_s=until_s) if waits else out]

    return changed(held_back)


@pytest.mark.nightly
def test_keys_that_never_paused_are_held_with_their_gaps(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judged(spark, tmp_path, late(11.5), min_keys=8)

    assert result.outcome == Outcome.HELD
    assert result.summary == "8 of 8 keys of totals never paused longer than 2 s"
    counts = result.counts
    assert (counts["keys"], counts["continuous"], counts["share"]) == (8, 8, 1.0)
    assert (counts["partitions"], counts["partitions_continuous"]) == (4, 4)
    assert (counts["normal_gap_p99_ms"], counts["gap_p50_ms"]) == (80, 80)
    assert 1400 < (counts["gap_max_ms"] or 0) < 1600
    assert counts["partition_0.gap_p50_ms"] == 80
    assert 1400 < (counts["partition_1.gap_p50_ms"] or 0) < 1600
    assert counts["restarted"] == 1


def test_a_longer_pause_of_one_partition_is_violated(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, late(13.0))

    assert result.outcome == Outcome.VIOLATED
    assert result.summary == ("6 of 8 keys of totals never paused longer than 2 s, 100% needed")
    assert result.counts["partitions_continuous"] == 3
    worst = result.findings[0]
    assert (worst.what, worst.detail["partition"]) == ("a key paused", 1)
    assert {finding.where for finding in result.findings} == {"totals: k-00001", "totals: k-00005"}
    assert 9.9 < worst.detail["since_s"] < 10.1

    case = judged_case(spark, tmp_path / "again", late(13.0))
    assert Continuity(within_s=2, share=0.75).check(case).outcome == Outcome.HELD
    by_lane = Continuity(within_s=2, share=0.8, by="partitions").check(case)
    assert by_lane.outcome == Outcome.VIOLATED
    assert [finding.where for finding in by_lane.findings] == ["totals: 1"]


@pytest.mark.nightly
def test_a_key_that_stopped_or_never_appeared_paused_to_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    def stopped_partition(out: OutputRecord) -> Iterable[OutputRecord]:
        never, silenced = number(out.record) == 2, number(out.record) == 3 and out.at_s > 10
        return [] if never or silenced else [out]

    result = judged(spark, tmp_path, changed(stopped_partition))

    assert result.outcome == Outcome.VIOLATED
    assert (result.counts["keys"], result.counts["continuous"]) == (8, 6)
    gaps = {finding.where: finding.detail for finding in result.findings}
    # The last event of sends before the end of the load is at 19.5 s.
    assert 9400 <= gaps["totals: k-00003"]["gap_ms"] <= 9600
    assert gaps["totals: k-00002"]["partition"] is None


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("by", ["keys", "partitions"])
def test_keys_in_another_form_than_sent_are_undecided(
    spark: SparkSession, tmp_path: Path, by: Literal["keys", "partitions"]
) -> None:
    def as_json(out: OutputRecord) -> Iterable[OutputRecord]:
        return [out._replace(record=out.record._replace(key=f'{{"key":"{out.record.key}"}}'))]

    result = judged(spark, tmp_path, changed(as_json), by=by)
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "totals: none of its records has a key that was sent, so that their pauses are not known",
    )


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("by", ["keys", "partitions"])
def test_message_keys_of_another_column_are_undecided(
    spark: SparkSession, tmp_path: Path, by: Literal["keys", "partitions"]
) -> None:
    """Four of the eight values are sent keys; all records are written in time."""
    written = changed(lambda out: [out._replace(message_key=bucket_key(out))])
    result = judged(spark, tmp_path, written, by=by)
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "totals: the message keys of its records are not their column `key`, so that the pauses of "
        "keys are not known",
    )


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(
    ("expected", "outcome", "summary"),
    [
        (
            "SELECT key, seq, amount, checksum FROM sent",
            Outcome.VIOLATED,
            "7 of 8 keys of totals never paused longer than 2 s, 100% needed",
        ),
        (
            "SELECT key, seq, amount, checksum FROM sent WHERE key <> 'k-00002'",
            Outcome.HELD,
            "7 of 7 keys of totals never paused longer than 2 s",
        ),
        (
            "SELECT seq, amount, checksum FROM sent",
            Outcome.UNDECIDED,
            "7 of 7 keys of totals never paused longer than 2 s; 1 more never had a record, and "
            "`expected` has no column `key`, so that those may have stopped",
        ),
    ],
)
def test_a_key_without_records_counts_where_it_is_expected(
    spark: SparkSession, tmp_path: Path, expected: str, outcome: Outcome, summary: str
) -> None:
    filtered = changed(lambda out: [] if number(out.record) == 2 else [out])
    case = judged_case(spark, tmp_path, filtered)
    job = case.experiment.job
    assert job is not None
    promise = job.promise.model_copy(update={"expected": expected})
    job = job.model_copy(update={"promise": promise})
    case = replace(case, experiment=case.experiment.model_copy(update={"job": job}))

    result = Continuity(within_s=2).check(case)

    assert (result.outcome, result.summary) == (outcome, summary)


@pytest.mark.nightly
@pytest.mark.parametrize("by", ["keys", "partitions"])
def test_a_key_that_stops_shortly_before_the_end_pauses_until_its_last_send(
    spark: SparkSession, tmp_path: Path, by: Literal["keys", "partitions"]
) -> None:
    """The span ends at 17.5 s, and the load continues until 20 s."""

    def stopped(out: OutputRecord) -> Iterable[OutputRecord]:
        return [] if out.partition == 3 and out.at_s > 16.5 else [out]

    result = judged(spark, tmp_path / "stopped", changed(stopped), by=by)
    assert result.outcome == Outcome.VIOLATED
    assert {f.where for f in result.findings} == (
        {"totals: k-00003", "totals: k-00007"} if by == "keys" else {"totals: 3"}
    )
    assert all(2900 < finding.detail["gap_ms"] < 3200 for finding in result.findings)
    assert all(16.4 < finding.detail["since_s"] <= 16.5 for finding in result.findings)

    for within_s in (3.5, max(finding.detail["gap_ms"] for finding in result.findings) / 1000):
        folder = tmp_path / f"allowed-{within_s}"
        allowed = judged(spark, folder, changed(stopped), by=by, within_s=within_s)
        assert allowed.outcome == Outcome.HELD

    def came_back(out: OutputRecord) -> Iterable[OutputRecord]:
        return [] if out.partition == 3 and 16.5 < out.at_s < 18 else [out]

    again = judged(spark, tmp_path / "again", changed(came_back), by=by)
    assert again.outcome == Outcome.HELD


@pytest.mark.nightly
def test_a_stop_after_the_span_is_no_pause_of_it(spark: SparkSession, tmp_path: Path) -> None:
    stopped_partition = changed(lambda out: [] if out.at_s > 17.6 else [out])
    assert judged(spark, tmp_path, stopped_partition).outcome == Outcome.HELD


@pytest.mark.nightly
def test_a_partition_without_any_record_may_have_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its keys were sent and never written; otherwise the job may not write to this partition."""
    stopped_partition = changed(lambda out: [] if out.partition == 2 else [out])
    result = judged(spark, tmp_path / "gone", stopped_partition, by="partitions")
    assert result.outcome == Outcome.UNDECIDED
    assert "1 more never had a record" in result.summary

    unused = changed(lambda out: [out._replace(partition=out.partition % 2)])
    result = judged(spark, tmp_path / "unused", unused, by="partitions")
    assert (result.outcome, result.counts["partitions"]) == (Outcome.HELD, 2)


@pytest.mark.nightly
def test_a_pause_before_the_fault_is_no_interruption(spark: SparkSession, tmp_path: Path) -> None:
    def paused(out: OutputRecord) -> Iterable[OutputRecord]:
        return [] if number(out.record) == 2 and 3 < out.at_s < 7 else [out]

    assert judged(spark, tmp_path, changed(paused)).outcome == Outcome.HELD


@pytest.mark.nightly_after(3)
@pytest.mark.parametrize(
    ("reported", "facts", "params", "why"),
    [
        (loads(Story()), {}, {}, "no fault took effect"),
        (
            injected(loads(Story())),
            {},
            {},
            "the heal of the fault (faults[0]) was not seen",
        ),
        (story(), {}, {"within_s": 11}, "the load ended 10.1 s after the fault was injected"),
        (story(), {"stamped": "create"}, {}, "set by the producer"),
        (story(), {"stamped": None}, {}, "are unknown"),
        (story(), {"began_ms": None}, {}, "nothing relates the stamps"),
        (story(), {}, {"output": "files"}, "files is no output that is a topic"),
        (story(), {}, {"min_keys": 9}, "8 keys throughout the fault"),
        (story(silent=(10.0, 14.0)), {}, {}, "0 keys throughout the fault"),
    ],
)
def test_without_evidence_there_is_no_verdict(
    spark: SparkSession,
    tmp_path: Path,
    reported: Story,
    facts: dict[str, Any],
    params: dict[str, Any],
    why: str,
) -> None:
    result = judged(spark, tmp_path, written_records(), reported, facts, **params)

    assert result.outcome == Outcome.UNDECIDED
    assert why in result.summary


@pytest.mark.nightly
def test_the_interval_is_at_least_as_long_as_the_limit(spark: SparkSession, tmp_path: Path) -> None:
    """The system has recovered 2.6 s after the injection, and the load continues for 10.1 s."""
    soon = judged(spark, tmp_path / "soon", late(11.5), within_s=8)
    assert soon.outcome == Outcome.HELD, soon.summary

    longer = judged(spark, tmp_path / "longer", late(19), within_s=8)
    assert longer.outcome == Outcome.VIOLATED, longer.summary


@pytest.mark.nightly
def test_a_limit_below_the_usual_gaps_proves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    def sparse(out: OutputRecord) -> Iterable[OutputRecord]:
        return [out._replace(at_s=float(int(out.at_s)) + 0.5)] if out.at_s < 9 else [out]

    result = judged(spark, tmp_path, changed(sparse), within_s=0.9)

    assert result.outcome == Outcome.UNDECIDED
    assert "one gap of a hundred lasted 1,000 ms" in result.summary


def batched(every_s: float, *, lost: bool = False) -> list[OutputRecord]:
    """Output in batches: five copies of each record, all of a batch at nearly the same moment. With
    `lost` the batch of the injection ran again, and the records sent meanwhile are in the next
    one."""

    def in_turn(out: OutputRecord) -> Iterable[OutputRecord]:
        at_s = (out.at_s // every_s + 1) * every_s
        if lost and 10 <= at_s < 10 + 3 * every_s:
            at_s = 10 + 3 * every_s
        return [out._replace(at_s=at_s + out.record.index % 100 / 1e4)] * 5

    return changed(in_turn)


@pytest.mark.nightly
def test_the_usual_pause_of_micro_batches_is_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A key has 125 records in each batch, so fewer than one gap of a hundred is longer than
    zero."""
    short = judged(spark, tmp_path / "short", batched(2.0), within_s=1.5)
    assert short.outcome == Outcome.UNDECIDED, short.summary
    assert "a key paused 1,990 ms or more for half of the time" in short.summary
    assert (short.counts["normal_gap_p99_ms"] or 0) < 20

    whole = judged(spark, tmp_path / "whole", batched(2.0), within_s=3)
    assert whole.outcome == Outcome.HELD, whole.summary
    lost = judged(spark, tmp_path / "lost", batched(2.0, lost=True), within_s=3)
    assert lost.outcome == Outcome.VIOLATED


def test_a_clock_moved_back_is_detected(spark: SparkSession, tmp_path: Path) -> None:
    # Written in the order of the index, so that the offsets grow while the stamps go back.
    moved = [out._replace(at_s=out.at_s - 3) if out.at_s > 15 else out for out in written_records()]

    result = judged(spark, tmp_path, moved)

    assert result.outcome == Outcome.UNDECIDED
    assert "go back by 2,9" in result.summary


def test_a_run_without_the_output_is_undecided(spark: SparkSession, tmp_path: Path) -> None:
    case = judged_case(spark, tmp_path, written_records())
    (tmp_path / "totals" / "read.json").unlink()

    result = Continuity(within_s=2).check(case)

    assert (result.outcome, result.summary) == (Outcome.UNDECIDED, "totals: it was not read")
    assert case.history.first(Action.FAULT_IN_EFFECT) is not None
