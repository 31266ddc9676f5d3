"""How far a job has read a topic, from the metrics of its Kafka sources.

The offsets of the consumer group are exact but late: a source commits when a checkpoint completes,
and the consumer sends the commit with its next poll, which an empty topic delays by up to ten
seconds. The metrics are at most half a second old.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.cluster.engines.flink.rest import FlinkRest

FRESH_MS = 3_000
"""The metrics of an attempt that has run for less may still be those of the attempt before it,
which may have read further."""
METRIC = re.compile(r"\.topic\.(.+)\.partition\.(\d+)\.currentOffset$")
"""The metric of a source's partition: its topic and its number."""


def positions(rest: FlinkRest, job: str, topic: str) -> dict[int, int]:
    """Partition -> the next offset the job will read; a partition it has not read yet is missing.

    If several sources of the job read the topic, the lowest offset counts. Empty while a task of
    the job has not run for `FRESH_MS`. Raises FlinkUnreachable, FlinkError.
    """
    vertices = rest.get(f"/jobs/{job}")["vertices"]
    if any(_is_young(rest.get(f"/jobs/{job}/vertices/{v['id']}")) for v in vertices):
        return {}
    read: dict[int, list[int]] = defaultdict(list)
    for vertex in vertices:
        for partition, offset in _offsets(rest, job, vertex["id"], topic):
            read[partition].append(offset)
    return {partition: min(offsets) + 1 for partition, offsets in read.items() if min(offsets) >= 0}


def topics(rest: FlinkRest, job: str) -> frozenset[str]:
    """The topics whose partitions the job's sources have. Raises FlinkUnreachable, FlinkError."""
    vertices = rest.get(f"/jobs/{job}")["vertices"]
    return frozenset(
        topic
        for vertex in vertices
        for topic, _ in _metrics(rest, _path(job, vertex["id"])).values()
    )


def _is_young(vertex: Mapping[str, Any]) -> bool:
    return any(
        task["status"] != "RUNNING" or task["status-duration"]["RUNNING"] < FRESH_MS
        for task in vertex["subtasks"]
    )


def _offsets(rest: FlinkRest, job: str, vertex: str, topic: str) -> Iterator[tuple[int, int]]:
    path = _path(job, vertex)
    partitions = {
        name: partition
        for name, (of_topic, partition) in _metrics(rest, path).items()
        if of_topic == topic
    }
    if partitions:
        for metric in rest.get(path, get=",".join(partitions), agg="max"):
            yield partitions[metric["id"]], int(metric["max"])


def _path(job: str, vertex: str) -> str:
    return f"/jobs/{job}/vertices/{vertex}/subtasks/metrics"


def _metrics(rest: FlinkRest, path: str) -> dict[str, tuple[str, int]]:
    """The metrics of partitions among those at an address -> their topic and partition."""
    found = ((metric["id"], METRIC.search(metric["id"])) for metric in rest.get(path))
    return {name: (match[1], int(match[2])) for name, match in found if match is not None}
