"""Partitions of an output from which nothing came any more, while records for them were sent.

A silent partition alone proves nothing: a rescaled job writes to others, a skewed load sends other
keys. It has stopped when some of its keys were sent on for long enough, and came nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.evidence.append_times import AppendedRecords
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.output_rate import Stamps
from streamquake.harness.verdict.evidence.sent_times import SentRange, noted_between, sent_ranges_of
from streamquake.harness.verdict.expected_output import register_sent

LEAST_GAPS = 5
"""With fewer gaps before the fault a partition has no usual one, and says nothing."""
UNUSUAL = 3
"""How many times as long as its longest gap before the fault a silence must be."""


@dataclass(frozen=True, kw_only=True)
class StoppedPartition:
    """A partition that went silent for good."""

    partition: int
    last_ms: int
    """The stamp of its last record."""
    silent_ms: int
    """From there to the end of the load, or until another fault was called."""
    usual_gap_ms: int
    """Its longest time between two records before the fault."""
    keys: int = 0
    """How many of its keys were sent afterwards and came nowhere."""


def stopped(
    case: JudgedRun,
    output: AppendedRecords,
    lanes: tuple[Stamps, Stamps],
    injected_ms: int,
    limit_ms: float,
    cut_ms: int | None = None,
) -> tuple[StoppedPartition, ...]:
    """The partitions that stopped after `injected_ms` for longer than the limit, and before another
    fault was called at `cut_ms`; `lanes` are the stamps of all records and their partitions. None
    are reported of a run that was not drained: what is missing there may only not be committed
    yet."""
    notes = sent_ranges_of(case.history)
    if not notes or not_drained(case.history) is not None:
        return ()
    load_end_ms = output.ms(notes[-1].at_ns)
    until_ms = load_end_ms if cut_ms is None else min(load_end_ms, cut_ms)
    silent = _silent(*lanes, injected_ms, until_ms, limit_ms)
    counted = (_with_keys(case, output, notes, lane, limit_ms) for lane in silent)
    return tuple(lane for lane in counted if lane.keys)


def _silent(
    stamps: Stamps, partitions: Stamps, injected_ms: int, until_ms: int, limit_ms: float
) -> Iterator[StoppedPartition]:
    for partition in np.unique(partitions):
        mine = np.sort(stamps[partitions == partition])
        gaps = np.diff(mine[mine < injected_ms])
        if len(gaps) < LEAST_GAPS:
            continue
        silent_ms, usual_ms = until_ms - int(mine[-1]), int(gaps.max())
        if silent_ms > max(limit_ms, UNUSUAL * usual_ms):
            yield StoppedPartition(
                partition=int(partition),
                last_ms=int(mine[-1]),
                silent_ms=silent_ms,
                usual_gap_ms=usual_ms,
            )


def _with_keys(
    case: JudgedRun,
    output: AppendedRecords,
    notes: list[SentRange],
    lane: StoppedPartition,
    limit_ms: float,
) -> StoppedPartition:
    """With the number of its keys that were sent no later than the limit before the load's end."""
    began_ns = (lane.last_ms - output.began_ms) * 1_000_000
    until_ns = began_ns + round((lane.silent_ms - limit_ms) * 1_000_000)
    since_then = [
        n
        for n in noted_between(notes, began_ns, until_ns)
        if began_ns < n.since_ns and n.at_ns <= until_ns
    ]
    if not since_then:
        return lane
    register_sent(case)
    index = F.col("index").between(since_then[0].first, since_then[-1].last)
    heard = case.spark().table("sent").where(index).select("key").distinct()
    records = output.records
    mine = records.where(F.col("partition") == lane.partition).select("key").distinct()
    since = records.where(F.col("timestamp_ms") > lane.last_ms).select("key").distinct()
    gone = mine.join(heard, "key", "semi").join(since, "key", "anti")
    return replace(lane, keys=gone.count())
