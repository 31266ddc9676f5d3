"""Whether the batches of a query read on from each other.

Each batch has the same sources, and reads each on from where the batch before it ended. Where
batches between two are not reported, the later one starts at or behind the end of the earlier one.
A driver that was started again goes on after the batch that it restored, and reads anew what
follows: with progress tracked beside the batches, also batches that had ended. It may name its
sources anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamquake.harness.verdict.evidence.batch_sources import Source, by_name, topic_offsets
from streamquake.reports.record.checkpoint_events import CheckpointCompleted, checkpoint_number
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestored


@dataclass(frozen=True, kw_only=True)
class Reported:
    """A batch with a report of its sources."""

    number: int
    driver: int
    """The index of the driver that reported it, from zero."""
    sources: Mapping[tuple[str, int], Source]


def broken_links(history: History, job: Any) -> Iterator[str]:
    """A message for each contradiction between a batch of a query and the one that it reads on
    from."""
    driver, reported = 0, list[Reported]()
    for event in history.of(CheckpointCompleted, JobRestored):
        if event.job != job:
            continue
        if isinstance(event, JobRestored):
            driver += 1
            restored = checkpoint_number(event)
            _forget(reported, beyond=-1 if restored is None else restored)
        elif isinstance(event, CheckpointCompleted) and event.is_micro_batch and event.offsets:
            _forget(reported, beyond=event.checkpoint - 1)
            sources = by_name(event.offsets)
            batch = Reported(number=event.checkpoint, driver=driver, sources=sources)
            if reported:
                yield from _between(reported[-1], batch)
            reported.append(batch)


def _forget(reported: list[Reported], *, beyond: int) -> None:
    """Remove the batches that are read anew; the others are in order of their numbers."""
    while reported and reported[-1].number > beyond:
        reported.pop()


def _between(before: Reported, after: Reported) -> Iterator[str]:
    one_driver = before.driver == after.driver
    if one_driver:
        yield from _other_sources(before, after)
    for (name, number), source in before.sources.items():
        next_one, end = after.sources.get((name, number)), source.get("end")
        if next_one is None or end is None:
            continue
        # A field that is null is reported, and one that is missing is not.
        start = next_one.get("start", end)
        # The log of a query keeps the offsets of a topic for another driver.
        known = one_driver or topic_offsets(source, "end") is not None
        adjacent = after.number == before.number + 1
        if start is None:
            went_on = not known
        else:
            went_on = start == end if adjacent else not _went_back(source, next_one)
        if not went_on:
            yield (
                f"batch {before.number} read {name} to {end}, and batch {after.number} from {start}"
            )
        elif known and next_one.get("end", end) is None:
            yield f"batch {after.number} read {name} from {start} to no offset"


def _other_sources(before: Reported, after: Reported) -> Iterator[str]:
    """The sources of a batch that the next one of the same driver lacks, or has more often."""
    read, now = (Counter(name for name, _ in each.sources) for each in (before, after))
    for name, times in read.items():
        if not now[name]:
            yield (
                f"batch {before.number} read {name}, of which batch {after.number} reports nothing"
            )
        elif now[name] != times:
            yield (
                f"batch {before.number} is reported with {times} sources {name}, and batch "
                f"{after.number} with {now[name]}"
            )


def _went_back(source: Source, next_one: Source) -> bool:
    """Whether a partition was read again, or is not known any more, after batches that are not
    reported."""
    ends, starts = topic_offsets(source, "end"), topic_offsets(next_one, "start")
    if ends is None or starts is None:
        return False
    return any(starts.get(place, -1) < end for place, end in ends.items())
