"""The checks of a topology that only its engines can make: roles, ports, versions and settings."""

from __future__ import annotations

from streamquake.cluster.engines.engine import UsesEndpoint, engine, engines, ports_of
from streamquake.cluster.engines.kafka.connection import file_problems, property_problems
from streamquake.cluster.links.links import port_number
from streamquake.topologies.loader import topology_of
from streamquake.topologies.model import Service, Topology
from streamquake.topologies.problems import Problem, did_you_mean, with_further
from streamquake.topologies.yaml_document import Document, Place

Problems = list[tuple[tuple[str, ...], str]]
"""(place below the topology, message)"""


def topology_problems(topology: Topology, *, recorded: bool = False) -> Problems:
    """All problems that its engines find in a topology; nothing is started or queried. Of one that
    is `recorded`, the files that its services name may be on another machine."""
    problems: Problems = []
    for name, service in topology.services.items():
        if service.engine not in engines:
            text = f'no engine is called "{service.engine}"{did_you_mean(service.engine, engines)}'
            problems.append((("services", name, "engine"), text))
            continue
        if service.endpoint is not None:
            problems += _endpoint_problems(name, service.engine, service.endpoint)
            problems += _client_problems(name, service, recorded=recorded)
            continue
        problems += [
            (("services", name, *place), message)
            for place, message in engine(service.engine).problems(topology, name)
        ]
    return [*problems, *(_port_problems(topology) or _doubled_links(topology))]


def checked_topology(
    document: Document, at: Place = (), *, recorded: bool = False
) -> tuple[Topology | None, list[Problem]]:
    """The topology at a place of a document, with all its problems, including those that its
    engines find. With problems, it is the topology without the invalid parts, or None."""
    topology, problems = topology_of(document, at)
    if topology is not None:
        further = topology_problems(topology, recorded=recorded)
        problems = with_further(
            problems, (document.problem((*at, *place), message) for place, message in further)
        )
    return topology, problems


def _endpoint_problems(name: str, runs: str, endpoint: str) -> Problems:
    place, uses = ("services", name, "endpoint"), engine(runs)
    if isinstance(uses, UsesEndpoint):
        role_problem = uses.endpoint_problem(endpoint)
        return [] if role_problem is None else [(place, role_problem)]
    able = ", ".join(known for known in engines if isinstance(engine(known), UsesEndpoint))
    message = f"an existing {runs} cannot be used, only an existing {able}"
    return [(place, f"{message}; deploy it (`nodes`), or leave the service out")]


def _client_problems(name: str, service: Service, *, recorded: bool) -> Problems:
    """Properties by which no client could connect."""
    place = ("services", name, "properties")
    if service.properties and service.engine != "kafka":
        return [(place, f"only Kafka takes `properties`, and this is {service.engine}; remove it")]
    problems = list(property_problems(service.properties))
    if not problems and not recorded:
        problems = list(file_problems(service.properties))
    return [((*place, key), text) for key, text in problems]


def _port_problems(topology: Topology) -> Problems:
    """Links to ports that the engine at their end does not have."""
    problems: Problems = []
    for name, link in topology.links.items():
        service = topology.services.get(link.to.partition("/")[0])
        if service is None or service.engine not in engines or isinstance(link.port, int):
            continue
        ports = ports_of(topology, link.to.partition("/")[0])
        if link.port not in ports:
            message = f'{service.engine} has no port "{link.port}"{did_you_mean(link.port, ports)}'
            problems.append((("links", name, "port"), message))
    return problems


def _doubled_links(topology: Topology) -> Problems:
    """Links on the same route as an earlier link: only the earlier one would carry traffic."""
    problems: Problems = []
    first: dict[tuple[str, str, int], str] = {}
    for name, link in topology.links.items():
        service = topology.services.get(link.to.partition("/")[0])
        if service is None or service.engine not in engines:
            continue
        route = (link.from_, link.to, port_number(topology, link))
        if (other := first.setdefault(route, name)) != name:
            message = (
                f"leads from {link.from_} to port {route[2]} of {link.to}, as the link {other} "
                "does; only one of them would carry the traffic; give it another port, or remove it"
            )
            problems.append((("links", name), message))
    return problems
