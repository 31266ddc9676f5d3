"""Whether the micro-batches of a run read a topic that its jobs read."""

from __future__ import annotations

from collections.abc import Collection

from streamquake.harness.verdict.evidence.batch_sources import topic_offsets
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History


def read_other_topics(history: History, topics: Collection[str]) -> str | None:
    """A message if the recorded batches read topics, and none of those that the jobs read; None
    where they read one, or a source of another kind, or where their offsets are not known."""
    batches = [event for event in history.of(CheckpointCompleted) if event.is_micro_batch]
    read: set[str] = set()
    for source in (source for batch in batches for source in batch.offsets or ()):
        # A source without data has no end.
        if source.get("end") is None:
            continue
        if (ends := topic_offsets(source, "end")) is None:
            return None
        read.update(topic for topic, _ in ends)
    if not read or not read.isdisjoint(topics):
        return None
    return f"the query is recorded to read {min(read)}, which is no topic that the jobs read"
