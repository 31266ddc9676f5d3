"""The duties of brokers: leader or follower of a partition, controller, transaction coordinator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

from streamquake.cluster.engines.engine import NodeDuty
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import OPEN, Brokers, PartitionState, brokers
from streamquake.cluster.live_cluster import LiveCluster

LEADER = NodeDuty(
    role="broker",
    usage="leader of partition N of TOPIC",
    pattern=r"leader of partition (?P<number>\d+) of (?P<topic>\S+)",
)
FOLLOWER = NodeDuty(
    role="broker",
    usage="follower of partition N of TOPIC",
    pattern=r"follower of partition (?P<number>\d+) of (?P<topic>\S+)",
    among=2,
)
CONTROLLER = NodeDuty(role="broker", usage="controller", pattern="controller")
COORDINATOR = NodeDuty(
    role="broker",
    usage="transaction coordinator of ID",
    pattern=r"transaction coordinator(?: of (?P<id>\S+))?",
)
"""The id may be left out, or be the beginning of one; what the run's id adds in front of it need
not be written: the job's `${run}-totals-0-7` is one of `totals`."""


def on_duty(cluster: LiveCluster, service: str, duty: str) -> tuple[str, ...]:
    """The broker that has the duty now. Raises LookupError, with the reason, when none has."""
    requested = brokers(cluster, service)
    answers: Mapping[NodeDuty, Callable[[Mapping[str, str | None]], int]] = {
        LEADER: lambda words: _leader(requested, words),
        FOLLOWER: lambda words: _follower(requested, words),
        CONTROLLER: lambda _: requested.controller(),
        COORDINATOR: lambda words: _coordinator(requested, cluster.run.run_id, words["id"] or ""),
    }
    for known, answer in answers.items():
        if (match := re.fullmatch(known.pattern, duty)) is not None:
            try:
                return (f"{service}/broker-{answer(match.groupdict())}",)
            except KafkaUnreachable as error:
                raise LookupError(f'"the {duty}" is not known: {error}') from error
    raise LookupError(f'no broker of {service} can be "the {duty}"')


def of_prefix(transactional_id: str, prefix: str, run_id: str) -> bool:
    """Whether an id begins so, with or without the run's id in front."""
    return transactional_id.startswith((prefix, f"{run_id}-{prefix}"))


def _leader(requested: Brokers, words: Mapping[str, str | None]) -> int:
    partition = _partition(requested, words)
    if partition.leader < 0:
        raise LookupError(f"partition {partition.name} has no leader now")
    return partition.leader


def _follower(requested: Brokers, words: Mapping[str, str | None]) -> int:
    """The first in-sync follower, by number: one that lags already is not worth a disturbance."""
    partition = _partition(requested, words)
    followers = sorted(set(partition.in_sync) - {partition.leader})
    if not followers:
        raise LookupError(f"partition {partition.name} has no follower in sync now")
    return followers[0]


def _partition(requested: Brokers, words: Mapping[str, str | None]) -> PartitionState:
    known = {partition.name: partition for partition in requested.partitions()}
    name = f"{words['topic']}/{words['number']}"
    if name not in known:
        there = ", ".join(known) or "none"
        raise LookupError(f"there is no partition {name}; there are: {there}")
    return known[name]


def _coordinator(requested: Brokers, run_id: str, prefix: str) -> int:
    """The coordinator of most of the ids; those with an open transaction count above all."""
    found = [t for t in requested.transactions() if of_prefix(t.id, prefix, run_id)]
    if not found:
        what = f"with {prefix} in front" if prefix else "at all"
        raise LookupError(f"the brokers know no transactional id {what}")
    counted = Counter(t.coordinator for t in [t for t in found if t.state == OPEN] or found)
    return min(counted, key=lambda number: (-counted[number], number))
