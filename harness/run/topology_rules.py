"""Whether the JVMs of a run accept the rules of its topology."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.jvm_agent import AgentError, JvmAgent
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.topologies.problems import BadInput, Problem


def reject_unreadable_rules(cluster: Cluster) -> None:
    """Raise BadInput for rules of the topology that cannot be parsed. Each script is parsed on one
    of its nodes."""
    scripts = {node.spec.group.rules: node for node in _with_rules(cluster)}
    _reject(
        (node, rule, error)
        for rules, node in scripts.items()
        for rule, error in _agent(cluster, node).unreadable("\n".join(rules or ())).items()
    )


def reject_refused_rules(cluster: Cluster) -> None:
    """Raise BadInput for rules that a JVM could not apply: the cluster is not the one of the
    topology. The agent reads a rule when its class is loaded, so that the same rules may be refused
    later. A node whose JVM does not answer, such as one that was killed, is left out."""
    _reject(
        (node, rule, error)
        for node in _with_rules(cluster)
        for rule, error in _errors(cluster, node)
    )


def _with_rules(cluster: Cluster) -> list[Node]:
    return [node for node in cluster.nodes.values() if node.spec.group.rules is not None]


def _reject(refused: Iterable[tuple[Node, str, str]]) -> None:
    found = [
        Problem(file=f"rules of {node.name}", message=f'"{rule}" is not applied: {error}')
        for node, rule, error in refused
    ]
    if found:
        raise BadInput(found)


def _errors(cluster: Cluster, node: Node) -> Iterator[tuple[str, str]]:
    try:
        rules = _agent(cluster, node).rules()
    except (AgentError, ContainerError):
        return
    if rules is not None:
        yield from rules.errors.items()


def _agent(cluster: Cluster, node: Node) -> JvmAgent:
    return JvmAgent(cluster.runtime, node.container)
