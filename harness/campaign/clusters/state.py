"""The state of a cluster, as far as a run could change it for the next one.

It is read after the deployment and again after each clean-up: equal states prove that the clean-up
removed everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import CleansUpRuns, Contents, engine
from streamquake.cluster.node import Node
from streamquake.cluster.node_replacement import containers_of, settings_of
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.cluster.sandbox import has_lost_network
from streamquake.faults.mechanisms.netfilter import MARK, in_namespace
from streamquake.topologies.errors import ErrorKind, StreamquakeError

WORKERS = 8
READ_RULES = ["sh", "-c", "iptables-save -t filter && iptables-save -t nat"]
LINKS = "the links"
"""The place of the proxies and toxics in a state, beside the nodes and the services: no name."""
MORE_MB = 10
"""How much more of a disk may be in use than after the deployment: logs of the services, and the
topics that Kafka creates for itself."""


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """What a run could have changed."""

    contents: Mapping[str, Contents]
    """Node, helper container, service or `LINKS` -> what is there, by kind."""
    used_mb: Mapping[str, int]
    """Node -> megabytes in use on its disk, for nodes with a disk of their own."""


class CannotCleanUp(StreamquakeError):
    """A service has no clean-up, so its cluster cannot be reused."""

    kind = ErrorKind.CLUSTER_FAILED


def read_state(cluster: Cluster) -> ClusterState:
    """The present state of every node, helper, link, disk and service. Raises an error of the
    engine or the container runtime when a part cannot be read, and CannotCleanUp."""
    nodes = list(cluster.nodes.values())
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        read = pool.map(lambda node: _node_state(cluster, node), nodes)
        states = {node.name: state for node, state in zip(nodes, read, strict=True)}
    return ClusterState(
        contents={
            **states,
            **_helpers_state(cluster),
            LINKS: _links_state(cluster),
            **services_state(cluster),
        },
        used_mb=cluster.disks.used_mb(),
    )


def services_state(cluster: Cluster) -> Mapping[str, Contents]:
    """The contents of every service. Raises CannotCleanUp, and errors of the engines."""
    return {
        service: cleaner(cluster, service).contents(cluster, service)
        for service in cluster.topology.services
    }


def cleaner(cluster: Cluster, service: str) -> CleansUpRuns:
    """The engine of a service. Raises CannotCleanUp."""
    runner = engine(cluster.topology.services[service].engine)
    if not isinstance(runner, CleansUpRuns):
        raise CannotCleanUp(f"{service} ({runner.name}) has no clean-up after a run")
    return runner


def differences(before: ClusterState, now: ClusterState) -> Mapping[str, str]:
    """Place -> the first difference there, for every place whose state changed."""
    found = {}
    for place in before.contents.keys() | now.contents.keys():
        changes = _changes(before.contents.get(place, {}), now.contents.get(place, {}))
        if (text := next(changes, None)) is not None:
            found[place] = text
    for node, used in now.used_mb.items():
        if used > (deployed := before.used_mb.get(node, 0)) + MORE_MB:
            found[f"disk of {node}"] = f"{used} MB are in use, {deployed} after the deployment"
    return dict(sorted(found.items()))


def first_difference(before: ClusterState, now: ClusterState) -> str | None:
    """The first difference between two states, with its place; None where they are equal."""
    changed = differences(before, now)
    return next((f"{place}: {text}" for place, text in changed.items()), None)


def counts(state: ClusterState) -> Mapping[str, int]:
    """Kind -> how many things of it the state has; a kind may be empty."""
    found: dict[str, int] = {"disks": len(state.used_mb)}
    for contents in state.contents.values():
        for kind, names in contents.items():
            found[kind] = found.get(kind, 0) + len(names)
    return dict(sorted(found.items()))


def _changes(before: Contents, now: Contents) -> Iterator[str]:
    for kind in sorted(before.keys() | now.keys()):
        old, new = before.get(kind, frozenset()), now.get(kind, frozenset())
        if added := sorted(new - old):
            yield f"{kind}: {added[0]} was not there after the deployment"
        if missing := sorted(old - new):
            yield f"{kind}: {missing[0]} is missing"


def _node_state(cluster: Cluster, node: Node) -> Contents:
    """A node's process, network, image, settings, limits and packet rules. The rules of the
    container engine itself, for its name server, change with each start of a sandbox and are left
    out."""
    state, usage = cluster.state(node), cluster.runtime.usage(node.container)
    found = containers_of(cluster, node)
    settings = settings_of(found[0]) if found else {}
    return {
        "processes": frozenset({str(state.status)}),
        "sandboxes": frozenset({str(cluster.runtime.inspect(node.sandbox).status)}),
        "networks": frozenset({"lost" if has_lost_network(cluster, node, state) else "joined"}),
        "images": frozenset({state.image_id}),
        "settings": frozenset(f"{key}={value}" for key, value in settings.items()),
        "limits": frozenset({f"cpus {usage.cpus}", f"memory {usage.memory_limit_bytes}"}),
        "packet rules": frozenset(_packet_rules(cluster, node.name, node.sandbox)),
    }


def _helpers_state(cluster: Cluster) -> Mapping[str, Contents]:
    """The process, image and packet rules of every container that serves the nodes: the proxy of
    the links and the keeper of the disks. What they hold is lost when they start anew."""
    found = cluster.runtime.find({labels.RUN: cluster.run_id, labels.NODE: ""})
    helpers = {each.labels[labels.NODE]: each.id for each in found}
    states = {}
    for name in sorted(helpers.keys() - cluster.nodes.keys()):
        state = cluster.runtime.inspect(helpers[name])
        states[name] = {
            "helpers": frozenset({f"{state.status} since {state.started_at}"}),
            "images": frozenset({state.image_id}),
            "packet rules": frozenset(_packet_rules(cluster, name, helpers[name])),
        }
    return states


def _packet_rules(cluster: Cluster, name: str, container: str) -> Iterator[str]:
    done = in_namespace(cluster.runtime, container, READ_RULES)
    if done is None:
        return
    if done.exit_code != 0:
        raise ContainerError(f"{name}: its packet rules could not be read: {done.output}")
    table = ""
    for line in done.output.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(f":{MARK}"):
            yield f"{table} {line.split()[0]}"
        elif line.startswith("-A ") and (table == "filter" or MARK in line):
            yield f"{table} {line}"


def _links_state(cluster: Cluster) -> Contents:
    """The proxies of all links, and their toxics."""
    if cluster.links.proxy is None:
        return {}
    proxies = cluster.links.proxy.proxies()
    return {
        "proxies": frozenset(
            f"{name} from {proxy['listen']} to {proxy['upstream']}, enabled: {proxy['enabled']}"
            for name, proxy in proxies.items()
        ),
        "toxics": frozenset(
            f"{name}: {toxic['name']}"
            for name, proxy in proxies.items()
            for toxic in proxy["toxics"]
        ),
    }
