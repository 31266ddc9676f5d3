"""What the faults of resources share: the group of a role, and nodes that do not run."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.cluster import Cluster, Node
from streamquake.cluster.runtime import AnswerLost, ContainerError, Status
from streamquake.topologies.model import NodeGroup, Topology

PROBE = ".streamquake-probe"
"""A file that is written to see how a disk or the memory answers, and removed at once."""


def group_of(topology: Topology, role: str) -> NodeGroup:
    """The declared nodes of a role."""
    service, _, name = role.partition("/")
    return topology.services[service].nodes[name]


def is_running(cluster: Cluster, node: Node) -> bool:
    """Whether something can be asked inside the node."""
    return cluster.state(node).status == Status.RUNNING


def is_gone(cluster: Cluster, node: Node) -> bool:
    return cluster.state(node).status == Status.GONE


def asked_inside(cluster: Cluster, node: Node, script: str, *words: object) -> str:
    """What a shell script says in the node, as the node's own user; `words` are $1, $2, …

    It must bear being run twice: it is when the engine loses the answer. Raises ContainerError when
    it fails.
    """
    argv: Sequence[str] = ["sh", "-c", script, "sh", *map(str, words)]
    try:
        said = cluster.runtime.exec(node.container, argv, timeout_s=20)
    except AnswerLost:
        said = cluster.runtime.exec(node.container, argv, timeout_s=20)
    if said.exit_code != 0:
        raise ContainerError(
            f"{node.name}: `{script}` failed with exit code {said.exit_code}: "
            f"{said.output.strip()[-300:]}"
        )
    return said.output
