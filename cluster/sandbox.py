"""The sandbox of a node: a container that does nothing and holds the node's network, as in a pod.

The node's process runs in a container beside it, in the same network namespace. So address, host
name, published ports and rules remain when the process ends: its peers get a reset at once, as from
a machine that still runs. Only `power_off` ends the sandbox too, as a machine without power does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.runtime import (
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    FoundResource,
)
from streamquake.topologies.model import NodeSpec

SUFFIX = "-sandbox"
"""The suffix of a sandbox's name, after the name of its node's container."""
LONGEST_NAME = 63
"""The engine answers who has an address with the sandbox's name, as one label of a domain name (RFC
1035). With a longer name it does not answer at all: a JobManager then waited ten seconds for each
TaskManager that registered."""
MEMORY_MB = 32


def sandbox_spec(
    cluster: LiveCluster,
    spec: NodeSpec,
    ip: str,
    published: Mapping[int, int],
    run_labels: Mapping[str, str],
) -> ContainerSpec:
    """The sandbox of a node; `published` are its ports (in the container -> on the host)."""
    ports = ",".join(f"{inside}:{outside}" for inside, outside in published.items())
    return ContainerSpec(
        name=sandbox_name(cluster.container_name(spec.host)),
        image=recipe("toolbox").tag,
        command=("sleep", "infinity"),
        labels={
            **run_labels,
            labels.SANDBOX: spec.name,
            labels.PORTS: ports,
            labels.ADDRESS: ip,
        },
        network=cluster.network,
        ip=ip,
        hostname=spec.host,
        aliases=(spec.host,),
        ports=published,
        memory_mb=MEMORY_MB,
    )


def sandbox_name(container: str) -> str:
    """The name of a sandbox by that of its node's container. A long one is cut, and stays unique by
    a digest of the whole."""
    if len(container) + len(SUFFIX) <= LONGEST_NAME:
        return f"{container}{SUFFIX}"
    ending = f"-{hashlib.sha256(container.encode()).hexdigest()[:8]}{SUFFIX}"
    return f"{container[: LONGEST_NAME - len(ending)]}{ending}"


def node_of(spec: NodeSpec, sandbox: FoundResource, container: str) -> Node:
    """The node of a sandbox that was found by its label, and of the container of its process."""
    pairs = (pair.split(":") for pair in sandbox.labels[labels.PORTS].split(",") if pair)
    return Node(
        spec=spec,
        container=container,
        sandbox=sandbox.id,
        ip=sandbox.labels[labels.ADDRESS],
        host_ports={int(inside): int(outside) for inside, outside in pairs},
    )


def start_sandbox_if_ended(cluster: LiveCluster, node: Node) -> None:
    """Start the sandbox of a node again, with its old address and ports, if it has ended. Its
    namespace is then a new one, without rules."""
    if cluster.runtime.inspect(node.sandbox).status != ContainerStatus.RUNNING:
        cluster.runtime.start_again(node.sandbox)


def has_lost_network(cluster: LiveCluster, node: Node, process: ContainerState) -> bool:
    """Whether the network of a node's process, in this state, is gone: the sandbox has ended, or it
    was started since the process joined its namespace. The process itself may still run."""
    sandbox = cluster.runtime.inspect(node.sandbox)
    if sandbox.status not in (ContainerStatus.RUNNING, ContainerStatus.PAUSED):
        return True
    runs = process.status in (ContainerStatus.RUNNING, ContainerStatus.PAUSED)
    return runs and process.started_ms < sandbox.started_ms
