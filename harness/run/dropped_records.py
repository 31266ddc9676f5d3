"""Records what a job with single-task failover dropped for tasks that were away.

The classes that the rules call write a line to the TaskManager's log for each part of it: what one
subpartition dropped before the barrier of a checkpoint, or until its next consumer. See
`docs/single-task.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.clock import on_run_clock_ns
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.event import Action

IN_RULES = ".DiscardingReader."
"""The class that drops records, as rules name it."""
LINE = re.compile(
    r"^(?P<time>\S+) WARN +DiscardingReader - Dropped (?P<records>\d+) records "
    r"\((?P<bytes>\d+) bytes\) for subpartition (?P<subpartition>\d+) of (?P<task>.+?)"
    r"(?: \(\w+\))?: (?:before checkpoint (?P<checkpoint>\d+)|until its next consumer)\.$",
    re.MULTILINE,
)
"""The task has its attempt's id behind its name, in parentheses."""


def record_dropped(cluster: Cluster, loop: EventLoop) -> None:
    """Record each part of what the nodes with such rules dropped since the run began."""
    for node in cluster.nodes.values():
        if any(IN_RULES in rules for rules in node.spec.group.rules or ()):
            for dropped in _dropped_by(cluster, node):
                loop.record(Action.RECORDS_DROPPED, process=node.name, **dropped)


def _dropped_by(cluster: Cluster, node: Node) -> Iterator[dict[str, Any]]:
    try:
        log = cluster.log_of(node)
    except ContainerError:  # the tear-down, which saves all logs, reports it
        return
    for line in LINE.finditer(log):
        logged_ns = int(datetime.fromisoformat(line["time"]).timestamp() * 1e9)
        logged_s = on_run_clock_ns(cluster.clock, logged_ns) / 1e9
        if logged_s >= 0:  # a cluster of several runs has the lines of earlier ones too
            checkpoint = line["checkpoint"]
            yield {
                "task": line["task"],
                "subpartition": int(line["subpartition"]),
                "records": int(line["records"]),
                "bytes": int(line["bytes"]),
                "before_checkpoint": None if checkpoint is None else int(checkpoint),
                "logged_s": round(logged_s, 3),
            }
