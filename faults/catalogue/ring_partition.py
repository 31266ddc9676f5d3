"""Ring partition: every node reaches only its two neighbours."""

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
from streamquake.topologies.model import Topology


@faults.register
class RingPartition(NodeIsolationFault):
    """Leave each node connected only to its predecessor and its successor in a ring: no node
    reaches all others, yet all are connected. Target: `all of ROLE`; with three nodes or fewer
    every node is a neighbour, and no packet would be stopped."""

    name: ClassVar[str] = "ring_partition"
    usual: ClassVar[str] = "all of flink/taskmanager"
    example: ClassVar[Mapping[str, Any]] = {"among": "service"}
    leaves_some: ClassVar[bool] = True

    among: Among = "role"
    """Which nodes form the ring: those of the target's role, or of its whole service."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        return node_count_problem(topology, role, 4, "a ring partition")

    def cut_off(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        reachable = {node.name, *(peer.name for peer in self.still_reachable(cluster, node))}
        ring = members(cluster, node, self.among)
        return [n for n in ring if n.name not in reachable] if len(ring) > 3 else []

    def still_reachable(self, cluster: Cluster, node: Node) -> Sequence[Node]:
        ring = members(cluster, node, self.among)
        at = ring.index(node)
        return [ring[at - 1], ring[(at + 1) % len(ring)]] if len(ring) > 3 else []
