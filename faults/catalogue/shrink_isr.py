"""Shrink the ISR: a follower cannot fetch, until the leaders remove it from the in-sync
replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import engine
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import PartitionState, brokers
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import until_now
from streamquake.faults.mechanisms.netfilter import (
    PacketRule,
    add_chain,
    chain_name,
    poll,
    remove_chain,
)
from streamquake.faults.requirement import Requirements, one_of, some
from streamquake.topologies.model import Topology

ANYWHERE = "0.0.0.0/0"


@faults.register
class ShrinkIsr(NodeFault):
    """Refuse a broker's connections to the other brokers' replication port, so that the leaders
    remove it from the in-sync replicas of partitions that are written to. It stays up, and keeps
    leading its own partitions."""

    name: ClassVar[str] = "shrink_isr"
    touches: ClassVar[str] = "replication"
    shows_in_place: ClassVar[bool] = True
    engines: ClassVar[tuple[str, ...]] = ("kafka",)
    usual: ClassVar[str] = "kafka/broker-3"

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        service, _, group = role.partition("/")
        if topology.services[service].nodes[group].count > 1:
            return None
        return f"{role} is one node, so nothing is replicated; declare three"

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        """The partitions that it follows in sync now. Raises KafkaUnreachable."""
        return {
            "in_sync_with": [
                p.name for p in _followed_partitions(cluster, target) if _in_sync(p, target)
            ]
        }

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        add_chain(cluster.runtime, target.sandbox, _chain(target), _rules(cluster, target), "reset")
        return until_now(cluster, called_ns, "iptables")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when it is out of sync with a partition that it followed in sync before; healed
        when it is in sync again with all of those. A partition without writes has no lagging
        follower."""
        found = poll(cluster.runtime, target.sandbox, _chain(target))
        applied = found is not None and found.in_place
        try:
            followed = _followed_partitions(cluster, target)
        except KafkaUnreachable as error:
            observations = {"unanswered": str(error)}
            return Evidence(
                in_effect=False, healed=False, in_place=applied, observations=observations
            )
        before = baseline.get("in_sync_with", [p.name for p in followed])
        awaited = [p for p in followed if p.name in before]
        out_of_sync = [p.name for p in awaited if not _in_sync(p, target)]
        ended = cluster.state(target).status == ContainerStatus.EXITED
        return Evidence(
            in_effect=applied and bool(out_of_sync),
            healed=not applied and (ended or not out_of_sync),
            in_place=applied,
            observations={
                "out_of_sync": out_of_sync,
                "in_sync": [p.name for p in awaited if p.name not in out_of_sync],
                "rules_laid": applied,
                "packets_refused": found.stopped if found else 0,
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"out_of_sync": some(), "rules_laid": one_of(True)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"rules_laid": one_of(False)}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        remove_chain(cluster.runtime, target.sandbox, _chain(target))
        return until_now(cluster, called_ns, "iptables")


def _followed_partitions(cluster: Cluster, node: Node) -> list[PartitionState]:
    number = node.spec.ordinal
    known = brokers(cluster, node.spec.service).partitions()
    return [p for p in known if number in p.replicas and p.leader != number]


def _in_sync(partition: PartitionState, node: Node) -> bool:
    return node.spec.ordinal in partition.in_sync


def _chain(node: Node) -> str:
    return chain_name("shrink_isr", node.name)


def _rules(cluster: Cluster, node: Node) -> list[PacketRule]:
    """The connections to the other brokers: direct ones, and those that a link routes through its
    proxy."""
    port = engine("kafka").ports()["internal"]
    others = [other for other in cluster.of_role(node.spec.role_name) if other.name != node.name]
    direct = [PacketRule(direction="out", peer=o.name, address=o.ip, port=port) for o in others]
    through_links = [
        PacketRule(direction="out", peer=path.target, address=ANYWHERE, port=path.proxy_port)
        for path in cluster.links.paths
        if path.source == node.name and path.target_port == port
    ]
    return [*direct, *through_links]
