"""The view of the cluster that its engines, links and disks have."""

from __future__ import annotations

from typing import Any, Protocol

from streamquake.cluster.node import Node
from streamquake.cluster.run_context import RunContext
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerRuntime, ContainerState, InjectionTimes
from streamquake.topologies.model import Topology


class LiveCluster(Protocol):
    """The nodes of a running cluster, and the runtime and clock that they use."""

    run_id: str
    topology: Topology
    runtime: ContainerRuntime
    clock: Clock
    nodes: dict[str, Node]
    clients: dict[str, Any]
    """Service -> the client that its engine uses; created by the engine at its first use."""
    run: RunContext
    """The run that uses the cluster now."""

    @property
    def network(self) -> str:
        """The name of the network that all its containers are in."""
        ...

    def container_name(self, host: str) -> str: ...

    def node(self, name: str) -> Node: ...

    def ip_of(self, name: str) -> str:
        """The address of a node, also while it is still being started."""
        ...

    def of_role(self, role: str) -> tuple[Node, ...]:
        """The nodes of a role such as `flink/taskmanager`, by number."""
        ...

    def of_service(self, service: str) -> tuple[Node, ...]: ...

    def address(self, node: Node, port: int) -> str:
        """host:port on loopback for one of the node's published ports."""
        ...

    def state(self, node: Node) -> ContainerState: ...

    def start_again(self, node: Node) -> InjectionTimes:
        """Start a stopped node and add its link rules again."""
        ...
