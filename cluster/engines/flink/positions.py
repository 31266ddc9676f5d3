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
OFFSET = ".currentOffset"
OF_PARTITION = re.compile(rf"\.topic\.(.+)\.partition\.\d+{re.escape(OFFSET)}$")


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
    paths = (
        f"/jobs/{job}/vertices/{vertex['id']}/subtasks/metrics"
        for vertex in rest.get(f"/jobs/{job}")["vertices"]
    )
    read = (OF_PARTITION.search(metric["id"]) for path in paths for metric in rest.get(path))
    return frozenset(found[1] for found in read if found is not None)


def _is_young(vertex: Mapping[str, Any]) -> bool:
    return any(
        task["status"] != "RUNNING" or task["status-duration"]["RUNNING"] < FRESH_MS
        for task in vertex["subtasks"]
    )


def _offsets(rest: FlinkRest, job: str, vertex: str, topic: str) -> Iterator[tuple[int, int]]:
    path = f"/jobs/{job}/vertices/{vertex}/subtasks/metrics"
    mark = f".topic.{topic}.partition."
    names = [m["id"] for m in rest.get(path) if mark in m["id"] and m["id"].endswith(OFFSET)]
    if names:
        for metric in rest.get(path, get=",".join(names), agg="max"):
            partition = metric["id"].partition(mark)[2].removesuffix(OFFSET)
            yield int(partition), int(metric["max"])
