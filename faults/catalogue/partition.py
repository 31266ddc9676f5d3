"""Partition: packets between two nodes are stopped, both ways or one way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.faults.fault import PairTarget, TargetKind, faults
from streamquake.faults.mechanisms.netfilter import TIMED_OUT, PacketRule
from streamquake.faults.mechanisms.network_cut import (
    ExpectedOutcome,
    NamespaceRules,
    NetworkCutFault,
    attempts_between,
    rules_from_proxy,
    rules_to_proxy,
)
from streamquake.faults.mechanisms.reachability import ConnectionAttempt


@faults.register
class Partition(NetworkCutFault[PairTarget]):
    """Stop packets between two nodes, including those of their links, and nothing else: `between A
    and B` both ways, `from A to B` one way, so that B receives nothing from A while A still
    receives from B."""

    name: ClassVar[str] = "partition"
    target_kind: ClassVar[TargetKind] = "pairs"
    usual: ClassVar[str] = "between kafka/broker-1 and hdfs/datanode-1"
    example: ClassVar[Mapping[str, Any]] = {"how": "silent"}
    other_outcomes: ClassVar[Set[str]] = frozenset({TIMED_OUT})

    def rules(self, cluster: Cluster, target: PairTarget) -> NamespaceRules:
        at_source, at_target = _one_way(cluster, target.source, target.target)
        if target.both_ways:
            back_target, back_source = _one_way(cluster, target.target, target.source)
            at_source, at_target = at_source + back_source, at_target + back_target
        else:
            receiver = target.target
            at_source.append(
                PacketRule(direction="in", peer=receiver.name, address=receiver.ip, passes=True)
            )
        return {target.source.sandbox: at_source, target.target.sandbox: at_target}

    def attempts(self, cluster: Cluster, target: PairTarget) -> Iterable[ConnectionAttempt]:
        return [
            *attempts_between(cluster, target.source, target.target),
            *attempts_between(cluster, target.target, target.source),
        ]

    def expected(
        self, cluster: Cluster, target: PairTarget, attempt: ConnectionAttempt
    ) -> ExpectedOutcome:
        stopped = target.both_ways or attempt.source == target.source.name
        return "stopped" if stopped else "unanswered"


def _one_way(
    cluster: Cluster, source: Node, target: Node
) -> tuple[list[PacketRule], list[PacketRule]]:
    """The packets to stop at the sender, and at the receiver.

    They are stopped where they arrive, so that the sender's kernel counts them as sent; only
    packets into a link are stopped at the sender, where the link's port is known.
    """
    links = cluster.links
    at_target = [PacketRule(direction="in", peer=source.name, address=source.ip)]
    return (
        rules_to_proxy(cluster, links.between(source.name, target.name)),
        at_target + rules_from_proxy(cluster, links.between(target.name, source.name)),
    )
