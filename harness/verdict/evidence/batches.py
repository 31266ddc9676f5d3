"""Micro-batches as Spark reports them, and which of them fell behind the load.

A micro-batch reads the records that have arrived when it begins. So a query that is too slow does
not hold its source back as a back-pressured operator does: more records wait for each batch, and
each batch takes longer. That is the back-pressure of micro-batches. It counts as proven where

- a batch took longer than its trigger's interval: the next one began at once;
- more records waited for the next one than had waited for it; and
- this continued, batch after batch, until at least twice as many records waited as at its start,
  and as the median before. One or two batches that are somewhat longer or smaller are chance.

The records that wait for a batch are those up to the newest offsets that Spark read at its begin
(`latestOffset`), without the processed ones; a limit on the size of batches may leave some of them
for later. The first batch with records of each driver proves nothing: it compiles plans and starts
processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from streamquake.harness.verdict.evidence.batch_sources import Source, offsets_in
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event_field import MissingField
from streamquake.reports.record.history import History

GROWN = 2.0
AT_ONCE_MS = 500
"""The longest time between two batches that follow each other without a wait: a busy driver needs
some."""
REPORTED = ("durations_ms", "input_rows", "offsets", "state_rows", "state_operators")
"""What every report of a batch has."""
WHOLE = "triggerExecution"
"""Spark's name for all of a batch; its other durations are parts of it."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One committed batch; moments in epoch ms of the driver's clock."""

    number: int
    driver: int
    """The index of the driver that committed it, from zero."""
    began_ms: int
    ended_ms: int
    ended_s: float
    """When its report was received, on the run's clock."""
    rows: int
    waiting: int
    """Records that waited for it when it began, including those that it read."""
    durations_ms: Mapping[str, int]
    """Spark's name for a part of the batch -> its duration. Parts follow each other."""
    state_rows: int
    state_commit_ms: int
    """The time in which tasks committed their state, summed over all tasks."""
    changelog_commit_ms: int | None
    """The part of it that was spent on changelogs; None with a store that does not report it."""
    files_copied: int | None
    """The files of the store that were copied for it; None with a store that does not report it."""

    @property
    def took_ms(self) -> int:
        return self.ended_ms - self.began_ms

    @property
    def began_s(self) -> float:
        return self.ended_s - self.took_ms / 1000


def batch_of(completed: CheckpointCompleted, *, driver: int) -> Batch | None:
    """The batch of a checkpoint; None where it was not reported because its driver ended at that
    moment. Raises MissingField where a field is missing in its report."""
    if "durations_ms" not in completed.value:
        return None
    for name in REPORTED:
        if completed.value.get(name) is None:
            raise MissingField(completed, name)
    try:
        return _reported_batch(completed, driver)
    except KeyError as missing:
        raise MissingField(completed, str(missing.args[0])) from None


def _reported_batch(completed: CheckpointCompleted, driver: int) -> Batch:
    """The batch of a checkpoint with a report. Raises KeyError where a field is missing in it."""
    reported = completed.value
    whole_ms = int(reported["durations_ms"][WHOLE])
    # Older histories do not record when it began. Its offsets may have been logged later, or, with
    # progress tracked beside the batches, not at all.
    began_ms = reported.get("began_ms", reported["trigger_ms"] + reported["duration_ms"] - whole_ms)
    durations = {
        name: int(spent) for name, spent in reported["durations_ms"].items() if name != WHOLE
    }
    operators = reported["state_operators"]
    return Batch(
        number=reported["checkpoint"],
        driver=driver,
        began_ms=began_ms,
        ended_ms=began_ms + whole_ms,
        ended_s=completed.at_s,
        rows=reported["input_rows"],
        waiting=sum(_waiting(source) for source in reported["offsets"]) or reported["input_rows"],
        durations_ms=durations,
        state_rows=reported["state_rows"],
        state_commit_ms=sum(operator["commit_ms"] for operator in operators),
        changelog_commit_ms=_custom(operators, "rocksdbChangeLogWriterCommitLatencyMs"),
        files_copied=_custom(operators, "rocksdbFilesCopied"),
    )


def longest_s(history: History) -> float:
    """The duration of the longest batch so far, in seconds; 0 without batches."""
    recorded = (event.durations_ms for event in history.of(CheckpointCompleted))
    return max((durations.get(WHOLE, 0) / 1000 for durations in recorded), default=0.0)


def settled_batches(batches: Iterable[Batch]) -> list[Batch]:
    """The batches after the first one with records of each driver."""
    return [
        batch for _, own in groupby(batches, lambda b: b.driver) for batch in _after_warm_up(own)
    ]


def batches_behind(batches: Sequence[Batch]) -> tuple[Batch, ...]:
    """The batches that fell behind the load, of all batches of a run in their order."""
    found: tuple[Batch, ...] = ()
    interval: tuple[Batch, ...] = ()
    known = settled_batches(batches)
    for at, (batch, after) in enumerate(pairwise(known)):
        at_once = after.driver == batch.driver and after.began_ms - batch.ended_ms <= AT_ONCE_MS
        if not at_once or after.waiting <= batch.waiting:
            interval = ()
            continue
        interval = (*interval, batch)
        before = [batch.waiting for batch in known[: at + 2 - len(interval)]]
        if after.waiting >= GROWN * max(1, interval[0].waiting, median(before)):
            found = (*found, *(batch for batch in interval if batch not in found))
    return found


def _after_warm_up(batches: Iterable[Batch]) -> Iterator[Batch]:
    warmed_up = False
    for batch in batches:
        if warmed_up:
            yield batch
        warmed_up = warmed_up or batch.rows > 0


def _waiting(source: Source) -> int:
    """The waiting records of one source, over its partitions; 0 where its offsets are not of
    topics."""
    done = offsets_in(source.get("start"))
    newest = offsets_in(source.get("latest") or source.get("end"))
    return sum(max(0, offset - done.get(place, 0)) for place, offset in newest.items())


def _custom(operators: Iterable[Mapping[str, Any]], name: str) -> int | None:
    recorded = [int(each["custom"][name]) for each in operators if name in each["custom"]]
    return sum(recorded) if recorded else None
