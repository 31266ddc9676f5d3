"""A Flink job's graph, and its pipelined regions: the tasks that restart together.

Flink restarts the region of a failed task. Two tasks are in one region when they exchange records
without storing them in between; an all-to-all exchange joins all subtasks of both vertices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

POINTWISE = ("FORWARD", "RESCALE")
JOINING = ("pipelined", "pipelined_bounded")
"""Without the approximate exchange, which makes every task a separate region."""
EMPTY_CHANNEL_BYTES = 8
"""The bytes that an unaligned checkpoint persists for a channel with empty buffers: a version and
the length 0, of 4 bytes each (Flink's `ChannelStateSerializerImpl.extractAndMerge`)."""
Subtask = tuple[str, int]


def edges(plan: Mapping[str, Any]) -> list[dict[str, str]]:
    """The edges of `GET /jobs/:job/plan`: from, to, ship (strategy), exchange."""
    return [
        {
            "from": source["id"],
            "to": node["id"],
            "ship": source["ship_strategy"],
            "exchange": source["exchange"],
        }
        for node in plan["nodes"]
        for source in node.get("inputs", ())
    ]


def regions(plan: Mapping[str, Any]) -> list[list[Subtask]]:
    """The pipelined regions as lists of (vertex, subtask), each sorted, in order of the plan."""
    parallelism = {node["id"]: int(node["parallelism"]) for node in plan["nodes"]}
    region = {(v, n): {(v, n)} for v, width in parallelism.items() for n in range(width)}
    for edge in edges(plan):
        if edge["exchange"] in JOINING:
            for source, target in pairs(edge, parallelism):
                _join(region, source, target)
    unique = {id(members): sorted(members) for members in region.values()}
    return list(unique.values())


def channels(parallelism: Mapping[str, int], edges: Sequence[Mapping[str, str]]) -> int:
    """The greatest number of channels of the edges; `parallelism` is that of each vertex."""
    return sum(
        max(parallelism.get(edge["from"], 0), parallelism.get(edge["to"], 0))
        if edge["ship"] in POINTWISE
        else parallelism.get(edge["from"], 0) * parallelism.get(edge["to"], 0)
        for edge in edges
    )


def may_hold_records(persisted_bytes: int, channels: int) -> bool:
    """Whether the in-flight data that a checkpoint persisted can hold records.

    An idle job persists both ends of some of its channels without a record in them. A record adds
    its own bytes, which are no multiple of eight for a row of SQL (four for its length, one for its
    kind, four for the row's length, then words of eight).
    """
    is_empty = persisted_bytes % EMPTY_CHANNEL_BYTES == 0
    return not is_empty or persisted_bytes > 2 * channels * EMPTY_CHANNEL_BYTES


def pairs(edge: Mapping[str, str], width: Mapping[str, int]) -> list[tuple[Subtask, Subtask]]:
    """The sending and receiving subtasks of an edge; for an all-to-all exchange only enough pairs
    to connect all of them. `width` is the parallelism of each vertex."""
    source, target = edge["from"], edge["to"]
    senders, receivers = width[source], width[target]
    if edge["ship"] not in POINTWISE:
        return [
            *(((source, n), (target, 0)) for n in range(senders)),
            *(((source, 0), (target, n)) for n in range(receivers)),
        ]
    # Flink's distribution (VertexInputInfoComputationUtils): even, contiguous, rounded down for
    # more senders, up for more receivers.
    if senders >= receivers:
        first = [n * senders // receivers for n in range(receivers + 1)]
        wide, narrow = source, target
    else:
        first = [-(-n * receivers // senders) for n in range(senders + 1)]
        wide, narrow = target, source
    return [
        ((wide, n), (narrow, k))
        for k in range(len(first) - 1)
        for n in range(first[k], first[k + 1])
    ]


def _join(region: dict[Subtask, set[Subtask]], one: Subtask, other: Subtask) -> None:
    if region[one] is region[other]:
        return
    joined = region[one] | region[other]
    for member in joined:
        region[member] = joined
