"""Common functions of the resource faults: the group of a role, and the state of a node."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.command_retry import run_again_on_failure
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus, ExecResult
from streamquake.topologies.model import NodeGroup, Topology

PROBE = ".streamquake-probe"
"""A file that is written to probe a disk or the memory, and removed at once."""

COMMAND_LIMIT_S = 20
"""How long a quick command inside a node may take on a busy machine, seconds."""


def group_of(topology: Topology, role: str) -> NodeGroup:
    """The declared nodes of a role."""
    service, _, name = role.partition("/")
    return topology.services[service].nodes[name]


def is_running(cluster: Cluster, node: Node) -> bool:
    """Whether the node runs, so that commands can run inside it."""
    return cluster.state(node).status == ContainerStatus.RUNNING


def is_removed(cluster: Cluster, node: Node) -> bool:
    return cluster.state(node).status == ContainerStatus.GONE


def run_inside(
    cluster: Cluster, node: Node, argv: Sequence[str], timeout_s: float = COMMAND_LIMIT_S
) -> ExecResult:
    """The result of a command in the node, whatever its exit code. The command must be safe to run
    twice: it is repeated when the engine loses the output. Raises ContainerError."""
    return run_again_on_failure(cluster.runtime, node.container, argv, timeout_s)


def run_script_inside(cluster: Cluster, node: Node, script: str, *words: object) -> str:
    """The output of a shell script in the node, run as the node's own user; `words` are $1, $2, …

    It must be safe to run twice, as with `run_inside`. Raises ContainerError when it fails.
    """
    done = run_inside(cluster, node, ["sh", "-c", script, "sh", *map(str, words)])
    if done.exit_code != 0:
        raise ContainerError(
            f"{node.name}: `{script}` failed with exit code {done.exit_code}: "
            f"{done.output.strip()[-300:]}"
        )
    return done.output
