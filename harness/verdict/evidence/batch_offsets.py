"""What Spark reports of the offsets of micro-batches that cannot be true together.

The offsets of Kafka are numbers that grow. Other sources have offsets of their own kinds, which are
only compared with each other. A source that had no data yet has no end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from streamquake.harness.verdict.evidence.batch_links import broken_links
from streamquake.harness.verdict.evidence.batch_sources import (
    Offsets,
    Source,
    malformed,
    topic_offsets,
)
from streamquake.reports.record.checkpoint_events import CheckpointCompleted, OffsetWritten
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import RecordsSent, RunDrained


def contradicted_offsets(batches: Sequence[CheckpointCompleted], history: History) -> Iterator[str]:
    """A message for each contradiction in the offsets of the completed batches of a query, which
    are in their order."""
    job = batches[0].job
    logged = {
        (event.checkpoint, event.step_ms) for event in history.of(OffsetWritten) if event.job == job
    }
    for batch in batches:
        # In real-time mode a batch reads beyond the newest offsets of its begin. Its own offsets
        # are logged at its end, and not as what triggers it.
        ends_known = (batch.checkpoint, batch.trigger_ms) in logged
        problems = _within(batch, ends_known=ends_known)
        yield from (f"batch {batch.checkpoint} {problem}" for problem in problems)
    yield from broken_links(history, job)


def drained_before_end(history: History, topics: Collection[str]) -> str | None:
    """A message if the newest batch ended before the records that the load had sent to its topics,
    or before the newest offset of one of their partitions, although the run was drained; None where
    it did not, or where its offsets are not known."""
    batches = [event for event in history.of(CheckpointCompleted) if event.is_micro_batch]
    if history.first(RunDrained) is None or not batches:
        return None
    last, ends, latest = batches[-1], Offsets(), Offsets()
    for source in last.offsets or ():
        ends |= topic_offsets(source, "end") or {}
        latest |= topic_offsets(source, "latest") or {}
    if not {*topics} <= {topic for topic, _ in ends}:
        return None
    sent = sum(e.count for e in history.of(RecordsSent) if e.status == "acknowledged")
    read = sum(end for (topic, _), end in ends.items() if topic in topics)
    if read < sent:
        return (
            f"batch {last.checkpoint}, the last one, ended at {read:,} offsets in all, and "
            f"{sent:,} records were acknowledged before the drain"
        )
    for (topic, partition), newest in latest.items():
        if topic in topics and (end := ends.get((topic, partition), 0)) < newest:
            return (
                f"batch {last.checkpoint}, the last one, read {topic}-{partition} to {end}, and "
                f"its newest offset was {newest} before the drain"
            )
    return None


def _within(batch: CheckpointCompleted, *, ends_known: bool) -> Iterator[str]:
    """What cannot be true of a single batch. One that its driver did not report has no offsets."""
    if batch.value.get("offsets") is None:
        return
    if not batch.offsets:
        yield "is reported without a source"
    for source in batch.offsets:
        if (wrong := malformed(source)) is not None:
            yield f"is reported with the {wrong}, which is no offset of a topic"
        else:
            yield from _ranges(source, ends_known=ends_known)
    rows = batch.input_rows
    if rows is not None and rows < 0:
        yield f"is reported to have read {rows:,} rows"
    elif rows and not any(map(_advanced, batch.offsets)):
        yield f"is reported to have read {rows:,} rows, and no offsets"


def _ranges(source: Source, *, ends_known: bool) -> Iterator[str]:
    """A partition that is not read forward, or beyond its newest offset."""
    start, end = topic_offsets(source, "start") or {}, topic_offsets(source, "end")
    if end is None:
        return
    lost = [place for place, offset in start.items() if end.get(place, -1) < offset]
    if lost:
        topic, partition = lost[0]
        to = end.get(lost[0], "nothing")
        yield f"is reported to have read {topic}-{partition} from {start[lost[0]]} to {to}"
    latest = topic_offsets(source, "latest") or {}
    beyond = [place for place, offset in end.items() if offset > latest.get(place, offset)]
    if beyond and ends_known:
        topic, partition = beyond[0]
        yield (
            f"is reported to have read {topic}-{partition} to {end[beyond[0]]}, and its newest "
            f"offset as {latest[beyond[0]]}"
        )


def _advanced(source: Source) -> bool:
    """Whether a source may have had rows. One that is reported without an end had none."""
    if "end" in source and source["end"] is None:
        return False
    start, end = topic_offsets(source, "start"), topic_offsets(source, "end")
    return start is None or end is None or start != end
