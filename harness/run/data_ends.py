"""Where the records of a topic that jobs write in transactions end.

The marker of a transaction's end takes an offset and is no record. So a job that has read every
record is some offsets before the end of the topic.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.harness.reconcile.reading.topic_records import topic_records

FIRST_SEARCHED = 1_000
"""How many offsets before the end are searched first; there are few markers behind the records."""


def data_ends(
    brokers: KafkaConnection,
    topic: str,
    ends: Mapping[int, int],
    begins: Mapping[int, int],
) -> dict[int, int]:
    """Partition -> the offset after its last committed record between `begins` (0 where left out)
    and `ends`; a partition without one is missing. Raises KafkaUnreachable."""
    found: dict[int, int] = {}
    left = {number: end for number, end in ends.items() if end > begins.get(number, 0)}
    searched = FIRST_SEARCHED
    while left:
        starts = {n: max(begins.get(n, 0), end - searched) for n, end in left.items()}
        found |= _last_records(brokers, topic, left, starts)
        left = {
            number: end
            for number, end in left.items()
            if number not in found and starts[number] > begins.get(number, 0)
        }
        searched *= 10
    return found


def _last_records(
    brokers: KafkaConnection, topic: str, ends: Mapping[int, int], starts: Mapping[int, int]
) -> dict[int, int]:
    last: dict[int, int] = {}
    for table in topic_records(brokers, topic, ends, committed=True, starts=starts):
        for partition, offset in zip(
            table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True
        ):
            last[partition] = max(last.get(partition, 0), offset + 1)
    return last
