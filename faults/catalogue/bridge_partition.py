"""Bridge partition: two halves that cannot reach each other, and one node that reaches both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.node_cut import (
    Among,
    NodeIsolationFault,
    members,
    node_count_problem,
)
from streamquake.faults.requirement import Requirements, more_than
from streamquake.topologies.model import Topology


@faults.register
class BridgePartition(NodeIsolationFault):
    """Divide the nodes into two halves joined only by the middle node, which reaches all. Target:
    `all of ROLE`."""

    name: ClassVar[str] = "bridge_partition"
    usual: ClassVar[str] = "all of kafka/broker"
    example: ClassVar[Mapping[str, Any]] = {"how": "silent", "among": "service"}
    leaves_some: ClassVar[bool] = True

    among: Among = "role"
    """Which nodes are divided: those of the target's role, or of its whole service."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        return node_count_problem(topology, role, 3, "a bridge partition")

    def cut_off(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        """The other half; empty for the bridge."""
        nodes = members(cluster, node, self.among)
        bridge, at = len(nodes) // 2, nodes.index(node)
        if at == bridge or len(nodes) < 3:
            return []
        return nodes[bridge + 1 :] if at < bridge else nodes[:bridge]

    def still_reachable(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        nodes = members(cluster, node, self.among)
        excluded = {node.name, *(other.name for other in self.cut_off(cluster, node))}
        return [n for n in nodes if n.name not in excluded] if len(nodes) >= 3 else []

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        """The bridge itself stops nothing."""
        return {
            "rules_laid": super().effect_requires(before)["rules_laid"],
            "packets_let_pass": more_than(0),
        }
