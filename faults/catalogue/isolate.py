"""Isolate: no packet passes between one node and the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.netfilter import PacketRule
from streamquake.faults.mechanisms.node_cut import NodeIsolationFault


@faults.register
class Isolate(NodeIsolationFault):
    """Isolate a node from every other node of the run and from all its links.

    The ports that it publishes to the harness stay open, and it can still resolve names.
    """

    name: ClassVar[str] = "isolate"
    usual: ClassVar[str] = "kafka/broker-1"
    example: ClassVar[Mapping[str, Any]] = {"how": "silent"}

    def cut_off(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        return [other for other in cluster.nodes.values() if other.name != node.name]

    def link_rules(self, cluster: Cluster, node: Node, peers: Sequence[Node]) -> list[PacketRule]:
        """All packets to and from the proxy, through which the links of other nodes to this node
        run as well."""
        ip = cluster.links.proxy_ip
        if not ip:
            return []
        return [
            PacketRule(direction="in", peer="links", address=ip),
            PacketRule(direction="out", peer="links", address=ip),
        ]
