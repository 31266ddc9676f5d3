"""Partitions around one node: rules in its own namespace alone separate it from some of the other
nodes."""

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
    ExpectedOutcome,
    NamespaceRules,
    NetworkCutFault,
    attempts_between,
    rules_from_proxy,
    rules_to_proxy,
)
from streamquake.faults.mechanisms.reachability import ConnectionAttempt
from streamquake.topologies.model import Topology

Among = Literal["role", "service"]
WORKERS = 8
"""The ports of all nodes are queried at once: the baseline must not delay the injection."""


class NodeIsolationFault(NetworkCutFault[Node]):
    """The base of faults that separate a node from some other nodes, in both directions."""

    target_kind: ClassVar[TargetKind] = "nodes"

    def cut_off(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        """The nodes that the node must no longer reach."""
        raise NotImplementedError

    def still_reachable(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        """The nodes that it must still reach; the evidence checks that."""
        return ()

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        if not self.rules(cluster, target)[target.sandbox]:
            raise ValueError(f"{self.name} leaves {target.name} as it is: too few nodes to divide")
        return super().inject(cluster, target)

    def rules(self, cluster: Cluster, target: Node) -> NamespaceRules:
        cut_off = self.cut_off(cluster, target)
        reachable = self.still_reachable(cluster, target)
        return {
            target.sandbox: [
                *(rule for peer in cut_off for rule in _both_ways(peer)),
                *self.link_rules(cluster, target, cut_off),
                *(
                    PacketRule(direction="in", peer=p.name, address=p.ip, passes=True)
                    for p in reachable
                ),
            ]
        }

    def link_rules(self, cluster: Cluster, node: Node, peers: Sequence[Node]) -> list[PacketRule]:
        """The packets to stop on the node's links to the nodes that it is separated from; the rules
        of those nodes stop their links to it."""
        paths = [path for peer in peers for path in cluster.links.between(node.name, peer.name)]
        return [*rules_to_proxy(cluster, paths), *rules_from_proxy(cluster, paths)]

    def attempts(self, cluster: Cluster, target: Node) -> Iterable[ConnectionAttempt]:
        cut_off = self.cut_off(cluster, target)
        peers = (*cut_off, *self.still_reachable(cluster, target))
        with ThreadPoolExecutor(max_workers=WORKERS) as pool:
            outgoing = pool.map(lambda peer: attempts_between(cluster, target, peer), peers)
            incoming = pool.map(lambda peer: attempts_between(cluster, peer, target)[:1], cut_off)
            return list(chain.from_iterable((*outgoing, *incoming)))

    def expected(
        self, cluster: Cluster, target: Node, attempt: ConnectionAttempt
    ) -> ExpectedOutcome:
        reachable = {peer.name for peer in self.still_reachable(cluster, target)}
        return "open" if attempt.target in reachable else "stopped"


def members(cluster: Cluster, node: Node, among: Among) -> list[Node]:
    """The declared nodes of a node's role or service, itself included, in their usual order."""
    return [
        cluster.nodes[spec.name]
        for spec in cluster.topology.nodes()
        if spec.name in cluster.nodes
        and spec.service == node.spec.service
        and (among == "service" or spec.role == node.spec.role)
    ]


def node_count_problem(topology: Topology, role: str, needed: int, what: str) -> str | None:
    """Why the service of a role has too few nodes, or None."""
    service = role.partition("/")[0]
    existing = sum(group.count for group in topology.services[service].nodes.values())
    if existing >= needed:
        return None
    return f"{what} needs {needed} nodes or more, and {service} has {existing}; raise a `count`"


def _both_ways(peer: Node) -> list[PacketRule]:
    return [
        PacketRule(direction="in", peer=peer.name, address=peer.ip),
        PacketRule(direction="out", peer=peer.name, address=peer.ip),
    ]
