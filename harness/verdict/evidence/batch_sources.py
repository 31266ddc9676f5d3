"""The sources of a micro-batch as Spark reports them.

The offsets of Kafka are whole numbers by topic and partition. Other sources have offsets of their
own kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

KAFKA = "Kafka"
"""How Spark's names of its sources of topics begin: `KafkaV2[…]`, `KafkaSourceV1[…]`."""
ENDS = ("start", "end", "latest")
"""What is reported of the offsets of a source. Each may be null."""
BEYOND = 2**63
"""Kafka's offsets are below it."""

Source = Mapping[str, Any]
"""What a batch reports of a source, {source, start, end, latest}."""
Offsets = dict[tuple[str, str], int]
"""Topic and partition -> offset."""


def by_name(sources: Sequence[Source]) -> dict[tuple[str, int], Source]:
    """Each source by its name, and by a number where several have one name: a query may read a
    topic twice."""
    seen: Counter[str] = Counter()
    named: dict[tuple[str, int], Source] = {}
    for source in sources:
        name = str(source.get("source"))
        named[name, seen[name]] = source
        seen[name] += 1
    return named


def topic_offsets(source: Source, which: str) -> Offsets | None:
    """The offsets of a source of topics; None for another source, or where they are not known."""
    reported = source.get(which)
    if not _reads_topics(source) or not isinstance(reported, Mapping):
        return None
    return offsets_in(reported)


def offsets_in(reported: Any) -> Offsets:
    """All that is an offset of a partition, in what is reported of a source of any kind."""
    return {place: offset for place, offset in _entries(reported).items() if _is_offset(offset)}


def malformed(source: Source) -> str | None:
    """Which of its offsets is none of a topic, although the source reads topics; None where all
    are, or are not known."""
    if not _reads_topics(source):
        return None
    for which in ENDS:
        reported = source.get(which)
        if reported is None:
            continue
        if not isinstance(reported, Mapping):
            return f"{which} of {reported!r}"
        for (topic, partition), offset in _entries(reported).items():
            if not _is_offset(offset):
                return f"{which} of {topic}-{partition} of {offset!r}"
    return None


def _reads_topics(source: Source) -> bool:
    return str(source.get("source")).startswith(KAFKA)


def _entries(reported: Any) -> dict[tuple[str, str], Any]:
    """Topic and partition -> what is reported as its offset."""
    return {
        (topic, partition): offset
        for topic, offsets in (reported.items() if isinstance(reported, Mapping) else ())
        if isinstance(offsets, Mapping)
        for partition, offset in offsets.items()
    }


def _is_offset(reported: Any) -> bool:
    return type(reported) is int and 0 <= reported < BEYOND
