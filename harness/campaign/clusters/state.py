"""The state of a cluster, as far as a run could change it for the next one.

It is read after the deployment and again after each clean-up: equal states prove that the clean-up
removed everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import CleansUpRuns, Contents, engine
from streamquake.cluster.node import Node
from streamquake.cluster.node_replacement import containers_of, settings_of
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.faults.mechanisms.netfilter import MARK, in_namespace
from streamquake.topologies.errors import ErrorKind, StreamquakeError

WORKERS = 8
READ_RULES = ["sh", "-c", "iptables-save -t filter && iptables-save -t nat"]
LINKS = "links"
"""The place of the toxics in a state, beside the nodes and the services."""

ClusterState = Mapping[str, Contents]
"""Node, service or `links` -> what is there, by kind."""


class CannotCleanUp(StreamquakeError):
    """A service has no clean-up, so its cluster cannot be reused."""

    kind = ErrorKind.CLUSTER_FAILED


def read_state(cluster: Cluster) -> ClusterState:
    """The present state of every node, link and service. Raises an error of the engine or the
    container runtime when a part cannot be read, and CannotCleanUp."""
    nodes = list(cluster.nodes.values())
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        read = pool.map(lambda node: _node_state(cluster, node), nodes)
        states = {node.name: state for node, state in zip(nodes, read, strict=True)}
    return {**states, LINKS: _links_state(cluster), **services_state(cluster)}


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
    for place in before.keys() | now.keys():
        text = next(_changes(before.get(place, {}), now.get(place, {})), None)
        if text is not None:
            found[place] = text
    return dict(sorted(found.items()))


def first_difference(before: ClusterState, now: ClusterState) -> str | None:
    """The first difference between two states, with its place; None where they are equal."""
    changed = differences(before, now)
    return next((f"{place}: {text}" for place, text in changed.items()), None)


def counts(state: ClusterState) -> Mapping[str, int]:
    """Kind -> how many things of it the state has; a kind may be empty."""
    found: dict[str, int] = {}
    for contents in state.values():
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
    """A node's process, image, settings, limits and packet rules. The rules of the container engine
    itself, for its name server, change with each start of a sandbox and are left out."""
    state, usage = cluster.state(node), cluster.runtime.usage(node.container)
    found = containers_of(cluster, node)
    settings = settings_of(found[0]) if found else {}
    return {
        "processes": frozenset({str(state.status)}),
        "sandboxes": frozenset({str(cluster.runtime.inspect(node.sandbox).status)}),
        "images": frozenset({state.image_id}),
        "settings": frozenset(f"{key}={value}" for key, value in settings.items()),
        "limits": frozenset({f"cpus {usage.cpus}", f"memory {usage.memory_limit_bytes}"}),
        "packet rules": frozenset(_packet_rules(cluster, node)),
    }


def _packet_rules(cluster: Cluster, node: Node) -> Iterator[str]:
    done = in_namespace(cluster.runtime, node.sandbox, READ_RULES)
    if done is None:
        return
    if done.exit_code != 0:
        raise ContainerError(f"{node.name}: its packet rules could not be read: {done.output}")
    table = ""
    for line in done.output.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(f":{MARK}"):
            yield f"{table} {line.split()[0]}"
        elif line.startswith("-A ") and (table == "filter" or MARK in line):
            yield f"{table} {line}"


def _links_state(cluster: Cluster) -> Contents:
    """The toxics of all links."""
    proxy = cluster.links.proxy
    if proxy is None:
        return {}
    return {
        "toxics": frozenset(
            f"{path.name}: {toxic}"
            for path in cluster.links.paths
            for toxic in proxy.toxics(path.name)
        )
    }
