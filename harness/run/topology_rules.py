"""Whether the JVMs of a run accept the rules of its topology."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.jvm_agent import AgentError, JvmAgent
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.topologies.problems import BadInput, Problem


def reject_refused_rules(cluster: Cluster) -> None:
    """Raise BadInput for rules that a JVM could not apply: the cluster is not the one of the
    topology. The agent reads a rule when its class is loaded, so that the same rules may be refused
    later. A node whose JVM does not answer, such as one that was killed, is left out."""
    found = [
        Problem(file=f"rules of {node.name}", message=f'"{rule}" is not applied: {error}')
        for node in cluster.nodes.values()
        if node.spec.group.rules is not None
        for rule, error in _errors(cluster, node)
    ]
    if found:
        raise BadInput(found)


def _errors(cluster: Cluster, node: Node) -> Iterator[tuple[str, str]]:
    try:
        rules = JvmAgent(cluster.runtime, node.container).rules()
    except (AgentError, ContainerError):
        return
    if rules is not None:
        yield from rules.errors.items()
