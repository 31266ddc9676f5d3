"""What Spark reports of the offsets of micro-batches that cannot be true together.

Each batch of a query has the same sources, and reads each on from where the batch before it ended.
The offsets of Kafka are numbers that grow. Other sources have offsets of their own kinds, which are
only compared with each other. A source that had no data yet has no end, and a driver that was
started again may name its sources anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestored
from streamquake.reports.record.run_events import RecordsSent, RunDrained

KAFKA = "Kafka"
"""How Spark's names of its sources of topics begin: `KafkaV2[…]`, `KafkaSourceV1[…]`."""

Source = Mapping[str, Any]
"""What a batch reports of a source, {source, start, end, latest}."""
Offsets = dict[tuple[str, str], int]
"""Topic and partition -> offset."""


def contradicted_offsets(batches: Sequence[CheckpointCompleted], history: History) -> Iterator[str]:
    """A message for each contradiction in the offsets of the completed batches of a query, which
    are in their order."""
    for batch in batches:
        yield from (f"batch {batch.checkpoint} {problem}" for problem in _within(batch))
    restored_s = [event.at_s for event in history.of(JobRestored) if event.job == batches[0].job]
    for before, after in pairwise(batches):
        if after.checkpoint == before.checkpoint + 1 and after.offsets:
            one_driver = not any(before.at_s <= at_s <= after.at_s for at_s in restored_s)
            yield from _between(before, after, one_driver=one_driver)


def drained_before_end(history: History, topics: Collection[str]) -> str | None:
    """A message if the newest batch ended before the records that the load had sent to its topics,
    although the run was drained; None where it did not, or where its offsets are not known."""
    batches = [event for event in history.of(CheckpointCompleted) if event.is_micro_batch]
    if history.first(RunDrained) is None or not batches:
        return None
    ends: Offsets = {}
    for source in batches[-1].offsets:
        ends |= _of_topics(source, "end") or {}
    if not {*topics} <= {topic for topic, _ in ends}:
        return None
    sent = sum(e.count for e in history.of(RecordsSent) if e.status == "acknowledged")
    read = sum(end for (topic, _), end in ends.items() if topic in topics)
    if read >= sent:
        return None
    return (
        f"batch {batches[-1].checkpoint}, the last one, ended at {read:,} offsets in all, and "
        f"{sent:,} records were acknowledged before the drain"
    )


def _within(batch: CheckpointCompleted) -> Iterator[str]:
    """What cannot be true of a single batch. One that its driver did not report has no offsets."""
    if "offsets" not in batch.value:
        return
    if not batch.offsets:
        yield "is reported without a source"
    rows, advanced = batch.input_rows, 0
    for source in batch.offsets:
        start, end = _of_topics(source, "start"), _of_topics(source, "end")
        if start is None or end is None:
            advanced = 1  # it may have read anything
            continue
        advanced += start != end
        lost = [place for place, offset in start.items() if end.get(place, -1) < offset]
        if lost:
            topic, partition = lost[0]
            to = end.get(lost[0], "nothing")
            yield f"is reported to have read {topic}-{partition} from {start[lost[0]]} to {to}"
    if rows is not None and rows < 0:
        yield f"is reported to have read {rows:,} rows"
    elif rows and not advanced:
        yield f"is reported to have read {rows:,} rows, and no offsets"


def _between(
    before: CheckpointCompleted, after: CheckpointCompleted, *, one_driver: bool
) -> Iterator[str]:
    """Sources that a batch did not read on from where the one before it ended, or of which it
    reports nothing."""
    sources = _by_name(after.offsets)
    for (name, number), source in _by_name(before.offsets).items():
        next_one, end = sources.get((name, number)), source.get("end")
        if next_one is None:
            if one_driver:
                yield (
                    f"batch {before.checkpoint} read {name}, of which batch {after.checkpoint} "
                    "reports nothing"
                )
            continue
        # A field that is null is reported, and one that is missing is not.
        start = next_one.get("start", end)
        if end is not None and start != end and (one_driver or start is not None):
            yield (
                f"batch {before.checkpoint} read {name} to {end}, and batch "
                f"{after.checkpoint} from {start}"
            )
        elif end is not None and one_driver and next_one.get("end", end) is None:
            yield f"batch {after.checkpoint} read {name} from {start} to no offset"


def _by_name(sources: Sequence[Source]) -> dict[tuple[str, int], Source]:
    """Each source by its name, and by a number where several have one name: a query may read a
    topic twice."""
    seen: Counter[str] = Counter()
    named: dict[tuple[str, int], Source] = {}
    for source in sources:
        name = str(source.get("source"))
        named[name, seen[name]] = source
        seen[name] += 1
    return named


def _of_topics(source: Source, which: str) -> Offsets | None:
    """The offsets of a source of topics; None for another source, or where they are not known."""
    topics = source.get(which)
    if not str(source.get("source")).startswith(KAFKA) or not isinstance(topics, Mapping):
        return None
    return {
        (topic, partition): int(offset)
        for topic, offsets in topics.items()
        if isinstance(offsets, Mapping)
        for partition, offset in offsets.items()
    }
