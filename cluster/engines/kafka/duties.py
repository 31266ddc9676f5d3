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
"""ID is optional. It may be a prefix of the transactional id, without the run's id in front:
`totals` matches the job's `${run}-totals-0-7`."""


def on_duty(cluster: LiveCluster, service: str, duty: str) -> tuple[str, ...]:
    """The broker that has the duty now. Raises LookupError, with the reason, when none has."""
    queries = brokers(cluster, service)
    answers: Mapping[NodeDuty, Callable[[Mapping[str, str | None]], int]] = {
        LEADER: lambda fields: _leader(queries, fields),
        FOLLOWER: lambda fields: _follower(queries, fields),
        CONTROLLER: lambda _: queries.controller(),
        COORDINATOR: lambda fields: _coordinator(cluster, service, fields["id"] or ""),
    }
    for known, answer in answers.items():
        if (match := re.fullmatch(known.pattern, duty)) is not None:
            try:
                return (f"{service}/broker-{answer(match.groupdict())}",)
            except KafkaUnreachable as error:
                raise LookupError(f'"the {duty}" is not known: {error}') from error
    raise LookupError(f'no broker of {service} can be "the {duty}"')


def of_prefix(transactional_id: str, prefix: str, run_id: str) -> bool:
    """Whether an id has this prefix, with or without the run's id in front."""
    return transactional_id.startswith((prefix, f"{run_id}-{prefix}"))


def _leader(queries: Brokers, fields: Mapping[str, str | None]) -> int:
    partition = _partition(queries, fields)
    if partition.leader < 0:
        raise LookupError(f"partition {partition.name} has no leader now")
    return partition.leader


def _follower(queries: Brokers, fields: Mapping[str, str | None]) -> int:
    """The first in-sync follower, by number: a fault on one that already lags proves nothing."""
    partition = _partition(queries, fields)
    followers = sorted(set(partition.in_sync) - {partition.leader})
    if not followers:
        raise LookupError(f"partition {partition.name} has no follower in sync now")
    return followers[0]


def _partition(queries: Brokers, fields: Mapping[str, str | None]) -> PartitionState:
    known = {partition.name: partition for partition in queries.partitions()}
    name = f"{fields['topic']}/{fields['number']}"
    if name not in known:
        existing = ", ".join(known) or "none"
        raise LookupError(f"there is no partition {name}; there are: {existing}")
    return known[name]


def _coordinator(cluster: LiveCluster, service: str, prefix: str) -> int:
    """The coordinator of most of the ids with an open transaction, or else of most of all ids. Ids
    that only earlier runs on the cluster used do not count: an id that this run uses again has
    another epoch."""
    earlier = cluster.run.remembered.get(service, frozenset())
    found = [
        transaction
        for transaction in brokers(cluster, service).transactions()
        if of_prefix(transaction.id, prefix, cluster.run.run_id) and transaction.name not in earlier
    ]
    if not found:
        what = f"that begins with {prefix}" if prefix else "at all"
        raise LookupError(f"the brokers know no transactional id {what}")
    counted = Counter(t.coordinator for t in [t for t in found if t.state == OPEN] or found)
    return min(counted, key=lambda number: (-counted[number], number))
