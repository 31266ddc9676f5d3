"""Partitions of an output that stopped growing while records for them were sent.

A silent partition alone proves nothing: a rescaled job writes to other partitions, a skewed load
sends other keys. It has stopped when some of its keys were sent for long enough and are in no
partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.evidence.append_times import AppendedRecords
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.message_keys import NOT_SENT, message_key_doubt
from streamquake.harness.verdict.evidence.output_rate import Stamps
from streamquake.harness.verdict.evidence.pauses import acknowledged_sends
from streamquake.harness.verdict.evidence.sent_times import (
    SentRange,
    load_ended_ns,
    recorded_between,
    sent_ranges_of,
)
from streamquake.harness.verdict.expected_output import register_sent

LEAST_GAPS = 5
"""With fewer gaps before the fault the usual gap of a partition is unknown, and it does not
count."""
UNUSUAL = 3
"""A silence must be longer than this multiple of the longest gap before the fault."""

SILENT_BEFORE = "it was silent before the fault was called, after an earlier one"

UNKNOWN_KEYS = "the keys that belong there are not known of records that were not generated"
OTHER_KEYS = "so that those which belong there are not known"


@dataclass(frozen=True, kw_only=True)
class StoppedPartition:
    """A partition without records until the end."""

    partition: int
    last_ms: int
    """The stamp of its last record."""
    silent_ms: int
    """From the last record to the end of the load, or until another fault was called."""
    usual_gap_ms: int
    """Its longest time between two records before the fault."""
    unclear: str = ""
    """Why it is not known whether it stopped by the judged fault; empty where it is."""
    keys: int = 0
    """How many of its keys were sent afterwards and are in no partition."""


def stopped_partitions(
    case: JudgedRun,
    output: AppendedRecords,
    lanes: tuple[Stamps, Stamps],
    injected_ms: int,
    limit_ms: float,
    cut_ms: int | None = None,
    first_ms: int | None = None,
) -> tuple[StoppedPartition, ...]:
    """The partitions that stopped after `injected_ms` for longer than the limit, and before another
    fault was called at `cut_ms`; `lanes` are the stamps of all records and their partitions. The
    first fault of the run was called at `first_ms`, or at `injected_ms` without it. In a run that
    was not drained, and where they were silent before, it is unclear whether they did."""
    sent_ranges = sent_ranges_of(case.history)
    if not sent_ranges:
        return ()
    load_end_ms = output.ms(load_ended_ns(case.history) or sent_ranges[-1].at_ns)
    until_ms = load_end_ms if cut_ms is None else min(load_end_ms, cut_ms)
    silent = _silent_partitions(*lanes, injected_ms, until_ms, limit_ms, first_ms)
    counted = (_with_missing_keys(case, output, sent_ranges, lane, limit_ms) for lane in silent)
    reason = not_drained(case.history)
    unclear = "" if reason is None else f"its records may not be committed yet: {reason}"
    return tuple(replace(lane, unclear=lane.unclear or unclear) for lane in counted if lane.keys)


def _silent_partitions(
    stamps: Stamps,
    partitions: Stamps,
    injected_ms: int,
    until_ms: int,
    limit_ms: float,
    first_ms: int | None = None,
) -> Iterator[StoppedPartition]:
    usual_until_ms = injected_ms if first_ms is None else first_ms
    for partition in np.unique(partitions):
        own = np.sort(stamps[partitions == partition])
        gaps = np.diff(own[own < usual_until_ms])
        if len(gaps) < LEAST_GAPS:
            continue
        silent_ms, usual_ms = until_ms - int(own[-1]), int(gaps.max())
        before_ms = injected_ms - int(own[-1]) if usual_until_ms < injected_ms else 0
        if silent_ms > max(limit_ms, UNUSUAL * usual_ms):
            yield StoppedPartition(
                partition=int(partition),
                last_ms=int(own[-1]),
                silent_ms=silent_ms,
                usual_gap_ms=usual_ms,
                unclear=SILENT_BEFORE if before_ms > UNUSUAL * usual_ms else "",
            )


def _with_missing_keys(
    case: JudgedRun,
    output: AppendedRecords,
    sent_ranges: list[SentRange],
    lane: StoppedPartition,
    limit_ms: float,
) -> StoppedPartition:
    """The partition with the number of its missing keys, of those sent at least the limit before
    the end of its silence."""
    began_ns = (lane.last_ms - output.began_ms) * 1_000_000
    until_ns = began_ns + round((lane.silent_ms - limit_ms) * 1_000_000)
    later_sends = [
        sent_range
        for sent_range in recorded_between(sent_ranges, began_ns, until_ns)
        if began_ns < sent_range.since_ns and sent_range.at_ns <= until_ns
    ]
    if not later_sends:
        return lane
    if not case.experiment.workload.generated:
        return replace(lane, keys=1, unclear=lane.unclear or UNKNOWN_KEYS)
    register_sent(case)
    if doubt := message_key_doubt(case, output):
        return _with_other_keys(lane, doubt)
    index = F.col("index").between(later_sends[0].first, later_sends[-1].last)
    spark = case.spark()
    sent_keys = acknowledged_sends(spark).where(index).select("key").distinct()
    records = output.records
    own = records.where(F.col("partition") == lane.partition).select("key").distinct()
    since = records.where(F.col("timestamp_ms") > lane.last_ms).select("key").distinct()
    missing = own.join(sent_keys, "key", "semi").join(since, "key", "anti").count()
    if not missing and not own.join(spark.table("sent"), "key", "anti").isEmpty():
        return _with_other_keys(lane, NOT_SENT)
    return replace(lane, keys=missing)


def _with_other_keys(lane: StoppedPartition, doubt: str) -> StoppedPartition:
    return replace(lane, keys=1, unclear=lane.unclear or f"{doubt}, {OTHER_KEYS}")
