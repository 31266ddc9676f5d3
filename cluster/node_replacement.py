"""Replace a node: another container takes its place, in its sandbox and with its name and volumes.

The new one is created while the old one still runs, so that a missing image does no harm; then the
old one ends, the new one starts, and the old one is removed. After an interruption at any moment,
`repair_node` leaves one container for the node; it needs only the labels.
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


def containers_of(cluster: Cluster, node: Node) -> list[FoundResource]:
    """The containers that carry the node's label, the present one first."""
    run_labels = {labels.RUN: cluster.run_id, labels.NODE: node.name}
    return best_first(cluster.runtime, cluster.runtime.find(run_labels))


def settings_of(found: FoundResource) -> Mapping[str, Scalar]:
    """The engine settings that a container has in addition to those of the topology."""
    settings: dict[str, Scalar] = json.loads(found.labels.get(labels.SETTINGS, "{}"))
    return settings


def usual_image(cluster: Cluster, node: Node) -> str:
    """The image that the topology gives the node."""
    return _plan(cluster, cluster.topology, node).image


def current_node(cluster: Cluster, node: Node) -> Node:
    """The node as it is now, even if another process has replaced it; changes nothing."""
    found = containers_of(cluster, node)
    if not found:
        return node
    now = replace(cluster.nodes.get(node.name, node), container=found[0].id)
    cluster.nodes[node.name] = now
    return now


def repair_node(cluster: Cluster, node: Node) -> Node:
    """Complete or undo an interrupted replacement; returns the node as it is then."""
    found = containers_of(cluster, node)
    for twin in found[1:]:
        cluster.runtime.remove(twin.id)
    name = cluster.container_name(node.spec.host)
    if found and found[0].name != name:
        cluster.runtime.rename(found[0].id, name)
    return current_node(cluster, node)


def replace_node(
    cluster: Cluster,
    node: Node,
    end: Callable[[Node], InjectionTimes],
    *,
    image: str,
    settings: Mapping[str, Scalar],
) -> InjectionTimes:
    """Replace the node's container by one with this image and these engine settings, in addition to
    those of the topology; `end` ends the old container. The returned times begin with that end and
    end with the start of the new one.

    Raises ValueError for settings that the engine rejects, ContainerError for a missing image
    (nothing was changed) or a container that does not start (the old one has ended and can be
    started again), and NodeDied when the new one ended at once.
    """
    old = repair_node(cluster, node)
    new = cluster.runtime.create(_spec(cluster, old, image, settings))
    try:
        ended = end(old)
        started = _started(cluster, old, new)
    except BaseException:
        cluster.runtime.remove(new)
        raise
    cluster.nodes[node.name] = replace(old, container=new)
    cluster.former_logs[node.name] = cluster.log_of(old)
    cluster.runtime.remove(old.container)
    cluster.runtime.rename(new, cluster.container_name(node.spec.host))
    return InjectionTimes(called_ns=ended.called_ns, seen_ns=started.seen_ns, how=ended.how)


def _started(cluster: Cluster, node: Node, new: str) -> InjectionTimes:
    try:
        return cluster.runtime.start_again(new)
    except ContainerError as error:
        log = cluster.runtime.logs(new, tail=15)
        image = cluster.runtime.inspect(new).image
        raise ContainerError(
            f"{node.name} does not start from {image}: {error}\n{log}".rstrip()
        ) from error


def _spec(
    cluster: Cluster, node: Node, image: str, settings: Mapping[str, Scalar]
) -> ContainerSpec:
    found = containers_of(cluster, node)
    if not found:
        raise ContainerError(
            f"{node.name}: expected a container to replace, but it was removed; `status` shows "
            "the existing ones"
        )
    run_labels = {key: text for key, text in found[0].labels.items() if key != labels.SETTINGS}
    if settings:
        run_labels[labels.SETTINGS] = json.dumps(dict(settings))
    plan = _plan(cluster, _with_settings(cluster.topology, node, settings), node)
    spec = container_spec(cluster, node.spec, replace(plan, image=image), node.sandbox, run_labels)
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
        listed = "; ".join(f"{'.'.join(path)}: {message}" for path, message in problems)
        raise ValueError(f"{service} rejects the settings {dict(settings)}: {listed}")
    return topology
