"""Loading topologies: the model, and the checks that need no engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamquake.topologies.base_documents import MOST_BASES, merge_with_base
from streamquake.topologies.model import Service, Topology
from streamquake.topologies.named_files import SHIPPED, find_file
from streamquake.topologies.parsing import parse, value_at
from streamquake.topologies.problems import BadInput, Problem, bad_input, did_you_mean
from streamquake.topologies.rule_scripts import embed_rule_scripts
from streamquake.topologies.service_files import embed_files
from streamquake.topologies.yaml_document import Document, Place, read_document

NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
OF_CONTAINERS = ("ports", "command", "volumes", "files", "ready")
"""The keys of a service that only the engine `container` has."""
LONGEST_HOST = 63
"""Services and roles become host names (RFC 1123)."""


def load_topology(name_or_path: str, beside: Path | None = None) -> Topology:
    """A shipped topology by name, or any by path. Raises BadInput with all problems at once.

    The checks that need an engine are in `streamquake.cluster.topology_validation`.
    """
    topology, problems = topology_of(find_topology(name_or_path, beside))
    if topology is None or problems:
        raise BadInput(problems)
    return topology


def find_topology(
    name_or_path: str, beside: Path | None = None, above: tuple[Path, ...] = ()
) -> Document:
    """The document of a topology, merged with its base; `above` are the files of the documents
    that build on it. Raises BadInput."""
    try:
        path = find_file("topology", name_or_path, shipped=SHIPPED, suffix=".yaml", beside=beside)
    except LookupError as error:
        raise bad_input(name_or_path, str(error)) from error
    above = (*above, path.resolve())
    if above[-1] in above[:-1]:
        chain = " -> ".join(ancestor.name for ancestor in above)
        raise bad_input(name_or_path, f"the bases form a cycle: {chain}")
    if len(above) > MOST_BASES:
        raise bad_input(name_or_path, f"more than {MOST_BASES} documents build on each other")
    return merge_with_base(
        read_document(path), lambda name: find_topology(name, path.parent, above)
    )


def topology_of(document: Document, at: Place = ()) -> tuple[Topology | None, list[Problem]]:
    """The topology at a place of a document, and every problem with it.

    If there are problems, the topology is without its invalid parts, or None.
    """
    topology, problems = parse(Topology, document, at)
    if topology is None:
        return None, problems
    topology, rule_problems = embed_rule_scripts(topology, document, at)
    topology, file_problems = embed_files(topology, document, at)
    problems += [*rule_problems, *file_problems]
    found = _name_problems(topology)
    if _has_all_roles(topology, value_at(document.data, at)):
        found += _link_problems(topology)
    problems += [document.problem((*at, *place), message) for place, message in found]
    return topology, problems


def _has_all_roles(topology: Topology, data: Any) -> bool:
    """Whether no role was left out because of a problem: a link to such a role would be reported as
    a problem too."""
    declared = set()
    for name in value_at(data, ("services",)):
        nodes = value_at(data, ("services", name, "nodes"))
        endpoint = topology.services[name].endpoint if name in topology.services else None
        if isinstance(nodes, Mapping):
            declared |= {f"{name}/{role}" for role in nodes}
        elif endpoint is None:
            declared |= {name}
    return declared == set(topology.roles())


def _name_problems(topology: Topology) -> list[tuple[Place, str]]:
    problems: list[tuple[Place, str]] = []
    if not topology.services:
        problems.append((("services",), "expected at least one service, got none"))
    for name, service in topology.services.items():
        places = [("services", name), *(("services", name, "nodes", r) for r in service.nodes)]
        problems += [
            (place, f'"{place[-1]}" becomes part of host names: use a-z, 0-9 and dashes inside')
            for place in places
            if not NAME.fullmatch(place[-1])
        ]
        problems += _deployment_problems(name, service)
    problems += [
        (("services", n.service, "nodes", n.role), f"the host name {n.host} is too long")
        for n in topology.nodes()
        if len(n.host) > LONGEST_HOST
    ]
    return problems


def _deployment_problems(name: str, service: Service) -> list[tuple[Place, str]]:
    """A service is either deployed, or used at its endpoint."""
    if service.endpoint is None:
        expected = "expected at least one role, got none; or give the `endpoint` of one that runs"
        missing = [] if service.nodes else [(("services", name, "nodes"), expected)]
        if service.properties:
            message = "only a Kafka at an `endpoint` takes `properties`; for brokers it is `config`"
            missing.append((("services", name, "properties"), message))
        return [*missing, *_container_problems(name, service)]
    given = [
        key
        for key in ("version", "connectors", "plugins", "image", "nodes", "config", *OF_CONTAINERS)
        if getattr(service, key)
    ]
    return [
        (
            ("services", name, key),
            f"a system at an endpoint is used as it is; remove `{key}`, or remove `endpoint` "
            "to have it deployed",
        )
        for key in given
    ]


def _container_problems(name: str, service: Service) -> list[tuple[Place, str]]:
    if service.engine == "container":
        return []
    message = f"the engine {service.engine} sets its own; only the engine container takes"
    return [
        (("services", name, key), f"{message} `{key}`")
        for key in OF_CONTAINERS
        if getattr(service, key)
    ]


def _link_problems(topology: Topology) -> list[tuple[Place, str]]:
    problems: list[tuple[Place, str]] = []
    roles = topology.roles()
    for name, link in topology.links.items():
        for end, role in (("from", link.from_), ("to", link.to)):
            if role not in roles:
                message = f'no role is called "{role}"{did_you_mean(role, roles)}'
                problems.append((("links", name, end), message))
        if isinstance(link.port, int) and not 1 <= link.port <= 65_535:
            message = f"expected a port from 1 to 65535, got {link.port}"
            problems.append((("links", name, "port"), message))
    return problems
