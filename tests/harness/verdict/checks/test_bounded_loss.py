"""`bounded_loss` on outputs with stamps: one record lost elsewhere changes the outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.outputs import JobPromise
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.verdict.checks.bounded_loss import BoundedLoss
from streamquake.harness.verdict.evidence.loss_scope import LossScopeUnknown, scopes_of
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story
from tests.harness.verdict.checks.stamped import (
    INJECTED_S,
    PROMISE,
    SQL,
    OutputRecord,
    changed,
    injected,
    judged_case,
    loads,
    story,
    task,
    written_records,
)


def judged(
    spark: SparkSession,
    data: Path,
    written: list[OutputRecord],
    reported: Story | None = None,
    *,
    sql: str = SQL,
    **params: Any,
) -> CheckResult:
    case = judged_case(spark, data, written, reported, sql=sql)
    return BoundedLoss(**{"slack_s": 1.0, **params}).check(case)


def dropped(out: OutputRecord) -> bool:
    """Whether a record went to subtask 1 between its failure and its restart."""
    return out.partition == 1 and 10.5 < out.at_s < 12


def with_loss(*more: int, duplicated: tuple[int, ...] = ()) -> list[OutputRecord]:
    """The usual loss, more lost records by their index, and some duplicates."""

    def change(out: OutputRecord) -> Iterable[OutputRecord]:
        if dropped(out) or out.record.index in more:
            return []
        copy = out._replace(at_s=max(13.0, out.at_s + 0.5))
        return [out, copy] if out.record.index in duplicated else [out]

    return changed(change)


def index_of(partition: int, after_s: float) -> int:
    """The index of the first record of a partition after a moment."""
    return next(
        o.record.index for o in written_records() if o.partition == partition and o.at_s > after_s
    )


USUAL = sum(dropped(out) for out in written_records())


def test_records_lost_or_duplicated_by_the_failed_subtask_are_in_scope(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judged(spark, tmp_path, with_loss(duplicated=(index_of(1, 9),)), at_most=USUAL + 1)

    assert result.outcome == Outcome.HELD
    assert result.summary == (
        f"{USUAL} lost and 1 duplicated in totals, all of restarted subtasks and of that time"
    )
    counts = result.counts
    assert (counts["lost"], counts["duplicated"], counts["in_scope"]) == (USUAL, 1, USUAL + 1)
    assert (counts["outside_subtask"], counts["outside_window"]) == (0, 0)
    # From the checkpoint at 8 s to running again at 12 s, a second earlier and later.
    assert (counts["window_s"], counts["affected_partitions"]) == (6.0, 1)


def with_invented(out: OutputRecord) -> Iterable[OutputRecord]:
    bent = out.record._replace(amount=out.record.amount + 1)
    return [out._replace(record=bent)] if out.record.index == 1100 else [out]


PLANTS: dict[str, tuple[Callable[[], list[OutputRecord]], dict[str, Any]]] = {
    "1 outside the failed subtask": (lambda: with_loss(index_of(2, 11)), {}),
    "1 outside the window": (lambda: with_loss(index_of(1, 3)), {}),
    "2 outside the window": (lambda: with_loss(duplicated=(index_of(1, 15), index_of(1, 4))), {}),
    "3 outside the window": (
        lambda: with_loss(*(index_of(partition, 3) for partition in (0, 2, 3))),
        {"spread": True},
    ),
    "1 changed": (lambda: changed(with_invented), {}),
    f"{USUAL} lost and 0 duplicated in totals, 5 allowed": (with_loss, {"at_most": 5}),
}


@pytest.mark.nightly
@pytest.mark.parametrize("message", PLANTS)
def test_every_other_anomaly_is_violated(spark: SparkSession, tmp_path: Path, message: str) -> None:
    plant, params = PLANTS[message]

    result = judged(spark, tmp_path, plant(), **params)

    assert result.outcome == Outcome.VIOLATED
    assert result.summary.startswith(message)
    if "outside" in message:
        place = message.partition(" ")[2]
        assert {finding.what for finding in result.findings} == {place}
        assert result.findings[0].detail["key"].startswith("k-")


@pytest.mark.nightly
def test_an_identity_may_have_a_column_called_as_a_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = judged_case(spark, tmp_path, with_loss(index_of(2, 11)))
    output = PROMISE.outputs["totals"].model_copy(
        update={"identity": ("key", "seq", "lost"), "map": {"lost": "CAST(amount AS BIGINT)"}}
    )
    promise = JobPromise(
        outputs={"totals": output}, expected="SELECT *, CAST(amount AS BIGINT) AS lost FROM sent"
    )
    job = Job(sql=SQL, promise=promise)
    experiment = case.experiment.model_copy(update={"job": job})

    result = BoundedLoss(slack_s=1.0).check(replace(case, experiment=experiment))

    assert result.summary.startswith("1 outside the failed subtask"), result.summary
    assert (result.counts["lost"], result.counts["in_scope"]) == (USUAL + 1, USUAL)
    assert result.findings[0].detail["lost"] == 1


@pytest.mark.nightly
def test_loss_without_any_restart_is_outside_and_no_loss_then_proves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judged(spark, tmp_path / "lost", with_loss(), story(failed=()))

    assert result.outcome == Outcome.VIOLATED
    assert result.counts["outside_subtask"] == USUAL

    whole = judged(spark, tmp_path / "whole", written_records(), story(failed=()))
    assert whole.outcome == Outcome.UNDECIDED
    assert "no subtask restarted" in whole.summary


@pytest.mark.nightly
def test_keys_that_cannot_be_attributed_leave_it_undecided(
    spark: SparkSession, tmp_path: Path
) -> None:
    once = index_of(1, 5)

    def other_partition(out: OutputRecord) -> Iterable[OutputRecord]:
        if dropped(out):
            return []
        return [out._replace(partition=0)] if out.record.index == once else [out]

    result = judged(spark, tmp_path, changed(other_partition))

    assert result.outcome == Outcome.UNDECIDED
    assert f"of {USUAL} records in totals cannot be attributed" in result.summary
    assert 0 < (result.counts["unattributed"] or 0) < USUAL


@pytest.mark.nightly
def test_a_record_written_at_the_moment_of_the_fault_is_not_before_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    called_s = INJECTED_S - 0.1
    once = index_of(1, called_s - 0.1)

    def other_partition(out: OutputRecord) -> Iterable[OutputRecord]:
        if dropped(out):
            return []
        moved = out._replace(partition=0, at_s=called_s)
        return [moved] if out.record.index == once else [out]

    result = judged(spark, tmp_path, changed(other_partition))

    assert (result.outcome, result.counts["in_scope"]) == (Outcome.HELD, USUAL)


def test_hashed_partitions_or_an_output_that_is_not_complete_are_undecided(
    spark: SparkSession, tmp_path: Path
) -> None:
    hashed = SQL.replace("'sink.partitioner' = 'fixed'", "'format' = 'json'")
    result = judged(spark, tmp_path / "hashed", with_loss(), sql=hashed)
    assert "do not set 'sink.partitioner' = 'fixed'" in result.summary

    cut = Story()
    cut._events = [e for e in story()._events if e.action != "drained"]
    pending = judged(spark, tmp_path / "cut", with_loss(), cut)
    assert "missing records may still arrive" in pending.summary
    assert {result.outcome, pending.outcome} == {Outcome.UNDECIDED}


@pytest.mark.parametrize(
    ("reported", "vertex", "why"),
    [
        (loads(Story()), None, "no fault took effect"),
        (injected(loads(Story())), None, "nothing is known of the attempts"),
        (story(), "Lookup", "`vertex` must name the one"),
        (story(failed=(("a", 1),)), None, "only others"),
        (
            injected(task(loads(Story()), 1, "b", 0, 0, "RUNNING")),
            None,
            "no checkpoint was complete",
        ),
        (task(story(failed=()), 13, "b", 2, 1, "DEPLOYING"), None, "subtask 2 that writes"),
    ],
)
def test_without_a_scope_nothing_is_judged(reported: Story, vertex: str | None, why: str) -> None:
    with pytest.raises(LossScopeUnknown, match=why):
        scopes_of(reported.history(), vertex, 4, 1.0)


def test_each_fault_has_its_own_scope() -> None:
    recorded = story().checkpoint(2, 14.0, 14.2)
    injected(recorded, 16.0)
    task(task(recorded, 16.5, "b", 2, 1, "RUNNING"), 16.6, "b", 1, 1, "RUNNING")

    first, second = scopes_of(recorded.history(), None, 4, 0.0)

    assert (first.partitions, first.first, first.last) == (frozenset({1}), 750, 1249)
    assert (second.partitions, second.first, second.last) == (frozenset({2}), 1350, 1699)


def test_a_vertex_that_spreads_its_records_has_all_partitions_in_scope() -> None:
    recorded = story(failed=(("a", 1),))

    (found,) = scopes_of(recorded.history(), "Source", 4, 0.0, spread=True)

    assert found.partitions == frozenset(range(4))
    (own,) = scopes_of(recorded.history(), "Source", 4, 0.0)
    assert own.partitions == frozenset({1})
    assert (own.first, own.last) == (found.first, found.last)


@pytest.mark.nightly
def test_a_restart_of_another_subtask_does_not_excuse_a_later_loss(
    spark: SparkSession, tmp_path: Path
) -> None:
    recorded = task(story(), 18.5, "b", 3, 1, "DEPLOYING")
    recorded = task(recorded, 19, "b", 3, 1, "RUNNING")

    result = judged(spark, tmp_path, with_loss(index_of(1, 16)), recorded)

    assert result.outcome == Outcome.VIOLATED
    assert result.counts["outside_window"] == 1


@pytest.mark.nightly
@pytest.mark.parametrize("edit", ["removed", "repeated"])
def test_a_damaged_record_is_undecided(spark: SparkSession, tmp_path: Path, edit: str) -> None:
    case = judged_case(spark, tmp_path, with_loss())
    (part,) = tmp_path.glob("totals/records/*/*.parquet")
    stored = StoredOutput(path=tmp_path / "totals")
    stored.finish({**stored.facts(), "records": pq.read_metadata(part).num_rows})
    rows = pq.read_table(part)
    pq.write_table(
        rows.slice(1) if edit == "removed" else pa.concat_tables([rows.slice(1), rows.slice(1, 1)]),
        part,
    )

    result = BoundedLoss(slack_s=1.0).check(case)

    assert result.outcome == Outcome.UNDECIDED
    assert ("the record holds" if edit == "removed" else "have the position") in result.summary
