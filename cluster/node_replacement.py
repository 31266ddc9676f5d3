"""Replace a node: another container takes its place, with its name, address, ports and volumes.

The new one is created while the old one still runs, so that a missing image does no harm; then the
old one ends, the new one starts, and the old one is removed. After an interruption at any moment,
`tidied` restores one node from the labels alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from streamquake.cluster.cluster import Cluster, container_spec
from streamquake.cluster.engines.engine import NodePlan, PortAllocator, engine
from streamquake.cluster.node import Node
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.duplicate_containers import MEANWHILE, best_first
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerSpec,
    FoundResource,
    InjectionTimes,
)
from streamquake.topologies.model import Scalar, Topology

LOG_LINES = 20_000
"""How much of the log of a replaced container is kept."""


def containers_of(cluster: Cluster, node: Node) -> list[FoundResource]:
    """The containers that carry the node's label, the one that is the node first."""
    marks = {labels.RUN: cluster.run_id, labels.NODE: node.name}
    return best_first(cluster.runtime, cluster.runtime.find(marks))


def settings_of(found: FoundResource) -> Mapping[str, Scalar]:
    """The engine settings that a container was given beyond those of the topology."""
    settings: dict[str, Scalar] = json.loads(found.labels.get(labels.SETTINGS, "{}"))
    return settings


def usual_image(cluster: Cluster, node: Node) -> str:
    """The image that the topology gives the node."""
    return _plan(cluster, cluster.topology, node).image


def found_again(cluster: Cluster, node: Node) -> Node:
    """The node as it is now, even if another process has replaced it; changes nothing."""
    found = containers_of(cluster, node)
    if not found:
        return node
    now = replace(cluster.nodes.get(node.name, node), container=found[0].id)
    cluster.nodes[node.name] = now
    return now


def tidied(cluster: Cluster, node: Node) -> Node:
    """The same, after the remains of an interrupted replacement were removed or repaired."""
    found = containers_of(cluster, node)
    for twin in found[1:]:
        cluster.runtime.remove(twin.id)
    name = cluster.container_name(node.spec.host)
    if found and found[0].name != name:
        cluster.runtime.rename(found[0].id, name)
    return found_again(cluster, node)


def replace_node(
    cluster: Cluster,
    node: Node,
    end: Callable[[Node], InjectionTimes],
    *,
    image: str,
    settings: Mapping[str, Scalar],
) -> InjectionTimes:
    """Let a container of this image take the node's place, with engine settings beside those of
    the topology; `end` ends the old one. Returns from that end to the new one's start.

    Raises ValueError for settings that the engine refuses, ContainerError where the image cannot
    be had (nothing has happened then) or its container does not start (the old one has ended and
    can be started again), and NodeDied when it ended at once.
    """
    old = tidied(cluster, node)
    new = cluster.runtime.create(_spec(cluster, old, image, settings))
    try:
        ended = end(old)
        started = _started(cluster, old, new)
    except BaseException:
        cluster.runtime.remove(new)
        raise
    now = cluster.nodes[node.name] = replace(old, container=new)
    cluster.route_links(now)
    log_tail = cluster.runtime.logs(old.container, tail=LOG_LINES)
    cluster.former_logs[node.name] = cluster.former_logs.get(node.name, "") + log_tail
    cluster.runtime.remove(old.container)
    cluster.runtime.rename(new, cluster.container_name(node.spec.host))
    return InjectionTimes(called_ns=ended.called_ns, seen_ns=started.seen_ns, how=ended.how)


def _started(cluster: Cluster, node: Node, new: str) -> InjectionTimes:
    try:
        return cluster.runtime.start_again(new)
    except ContainerError as error:
        message = cluster.runtime.logs(new, tail=15)
        image = cluster.runtime.inspect(new).image
        raise ContainerError(
            f"{node.name} does not start from {image}: {error}\n{message}".rstrip()
        ) from error


def _spec(
    cluster: Cluster, node: Node, image: str, settings: Mapping[str, Scalar]
) -> ContainerSpec:
    found = containers_of(cluster, node)
    if not found:
        raise ContainerError(
            f"{node.name}: expected a container to replace, but it was removed; `status` shows "
            "what is there"
        )
    marks = {key: text for key, text in found[0].labels.items() if key != labels.SETTINGS}
    if settings:
        marks[labels.SETTINGS] = json.dumps(dict(settings))
    plan = _plan(cluster, _with_settings(cluster.topology, node, settings), node)
    spec = container_spec(
        cluster, node.spec, replace(plan, image=image), node.ip, node.host_ports, marks
    )
    return replace(spec, name=f"{spec.name}{MEANWHILE}", volumes_from=node.container)


def _plan(cluster: Cluster, topology: Topology, node: Node) -> NodePlan:
    ports = PortAllocator(host=lambda of, port: cluster.nodes[of.name].host_ports[port])
    return engine(topology.services[node.spec.service].engine).plan(topology, node.spec, ports)


def _with_settings(topology: Topology, node: Node, settings: Mapping[str, Scalar]) -> Topology:
    """The topology with settings of one service changed. Raises ValueError."""
    service = node.spec.service
    declared = topology.services[service]
    changed = declared.model_copy(update={"config": {**declared.config, **settings}})
    topology = topology.model_copy(update={"services": {**topology.services, service: changed}})
    if problems := engine(declared.engine).problems(topology, service):
        words = "; ".join(f"{'.'.join(path)}: {message}" for path, message in problems)
        raise ValueError(f"{service} refuses the settings {dict(settings)}: {words}")
    return topology
