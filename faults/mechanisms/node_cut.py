"""Partitions around one node: it is separated from some of the others by rules in its own namespace
alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import ClassVar, Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import TargetKind
from streamquake.faults.mechanisms.netfilter import PacketRule
from streamquake.faults.mechanisms.network_cut import (
    Blocks,
    ExpectedOutcome,
    NetworkCutFault,
    attempts_between,
    from_proxy,
    to_proxy,
)
from streamquake.faults.mechanisms.reachability import ConnectionAttempt
from streamquake.topologies.model import Topology

Among = Literal["role", "service"]
WORKERS = 8
"""The ports of all nodes are queried at once: the baseline must not delay the injection."""


class NodeIsolationFault(NetworkCutFault[Node]):
    """The base of faults that separate a node from some others, both ways."""

    target_kind: ClassVar[TargetKind] = "nodes"

    def cut_off(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        """The nodes that the node must no longer reach."""
        raise NotImplementedError

    def still_reachable(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        """The nodes that it must still reach; the evidence checks that."""
        return ()

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        if not self.blocks(cluster, target)[target.container]:
            raise ValueError(f"{self.name} leaves {target.name} as it is: too few nodes to divide")
        return super().inject(cluster, target)

    def blocks(self, cluster: Cluster, target: Node) -> Blocks:
        cut_off = self.cut_off(cluster, target)
        seen = self.still_reachable(cluster, target)
        return {
            target.container: [
                *(block for peer in cut_off for block in _both_ways(peer)),
                *self.link_blocks(cluster, target, cut_off),
                *(PacketRule(way="in", peer=p.name, address=p.ip, passes=True) for p in seen),
            ]
        }

    def link_blocks(self, cluster: Cluster, node: Node, peers: Sequence[Node]) -> list[PacketRule]:
        """The packets to stop on the node's links to the nodes it is separated from; their links to
        it are stopped by their own rules."""
        paths = [path for peer in peers for path in cluster.links.between(node.name, peer.name)]
        return [*to_proxy(cluster, paths), *from_proxy(cluster, paths)]

    def attempts(self, cluster: Cluster, target: Node) -> Iterable[ConnectionAttempt]:
        cut_off = self.cut_off(cluster, target)
        requested = (*cut_off, *self.still_reachable(cluster, target))
        with ThreadPoolExecutor(max_workers=WORKERS) as pool:
            there = pool.map(lambda peer: attempts_between(cluster, target, peer), requested)
            back = pool.map(lambda peer: attempts_between(cluster, peer, target)[:1], cut_off)
            return list(chain.from_iterable((*there, *back)))

    def expected(
        self, cluster: Cluster, target: Node, attempt: ConnectionAttempt
    ) -> ExpectedOutcome:
        seen = {peer.name for peer in self.still_reachable(cluster, target)}
        return "open" if attempt.target in seen else "stopped"


def members(cluster: Cluster, node: Node, among: Among) -> list[Node]:
    """The declared nodes of a node's role or service, itself included, in their usual order."""
    return [
        cluster.nodes[spec.name]
        for spec in cluster.topology.nodes()
        if spec.name in cluster.nodes
        and spec.service == node.spec.service
        and (among == "service" or spec.role == node.spec.role)
    ]


def too_few(topology: Topology, role: str, needed: int, what: str) -> str | None:
    """Why the service of a role has too few nodes, or None."""
    service = role.partition("/")[0]
    there = sum(group.count for group in topology.services[service].nodes.values())
    if there >= needed:
        return None
    return f"{what} needs {needed} nodes or more, and {service} has {there}; raise a `count`"


def _both_ways(peer: Node) -> list[PacketRule]:
    return [
        PacketRule(way="in", peer=peer.name, address=peer.ip),
        PacketRule(way="out", peer=peer.name, address=peer.ip),
    ]
