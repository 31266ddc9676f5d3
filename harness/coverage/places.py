"""The part of the pipeline that a target is in: by its role, its link, or its subtasks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from streamquake.cluster.engines.engine import job_runner
from streamquake.faults.schedule.target import TargetChoice, roles_of
from streamquake.harness.verdict.evidence.affected_subtasks import ENDS
from streamquake.reports.coverage.cell import Place
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted
from streamquake.topologies.model import Topology

TASKS = frozenset({Place.SOURCE, Place.OPERATOR, Place.SINK})
"""What the tasks of a worker may be."""
SYSTEMS: Mapping[str, Place] = {
    "kafka": Place.BROKER,
    "hdfs": Place.STORE,
    "zookeeper": Place.COORDINATOR,
}
"""Engine that runs no job -> its part of the pipeline."""
PORTS: Mapping[str | int, Place] = {"input": Place.SOURCE, "output": Place.SINK}
"""Port of a broker -> what connects to it."""
SINK = re.compile(r"\bSink\b|: Writer|: Committer|FileWriter")
"""The names of operators that belong to a sink."""
CHAINED = re.compile(r" -> |[(),]")
"""What separates the operators in the name of a vertex."""


def places_of_target(choice: TargetChoice, topology: Topology) -> frozenset[Place]:
    """Every part of the pipeline that a target may be in."""
    match choice.how:
        case "workload":
            return frozenset({Place.SOURCE})
        case "job":
            return frozenset({Place.COORDINATOR})
        case "link":
            link = topology.links[choice.name]
            return _of_connection((link.from_, link.to), topology, link.port)
        case "between" | "from":
            ends = [roles_of(end, topology) for end in choice.ends]
            return _union(_of_connection((a, b), topology) for a in ends[0] for b in ends[1])
        case _:
            return _union(_of_role(role, topology) for role in roles_of(choice, topology))


def places_of_nodes(nodes: Iterable[str], topology: Topology) -> frozenset[Place]:
    """The parts of the pipeline of nodes and pairs of nodes, by their names; a worker may run any
    task."""
    return _union(_of_name(ENDS.split(name), topology) for name in nodes)


def is_worker(node: str, topology: Topology) -> bool:
    """Whether the tasks of a job run on a node."""
    return _of_role(_role(node), topology) == TASKS


class TaskPlaces:
    """The parts of the pipeline of the vertices of a history's jobs, by name."""

    def __init__(self, history: History) -> None:
        self._sources: set[str] = set()
        self._known: set[str] = set()
        for graph in history.of(JobSubmitted):
            fed = {edge["to"] for edge in graph.edges or ()}
            names = {vertex["id"]: str(vertex["name"]) for vertex in graph.vertices}
            self._known |= set(names.values())
            if graph.edges is not None:
                self._sources |= {name for vertex, name in names.items() if vertex not in fed}

    def of(self, vertex: str) -> frozenset[Place]:
        """A vertex without an input is a source. Any other one is a stateful operator, a sink, or,
        where the sink is chained to the operator, both."""
        if vertex not in self._known:
            return frozenset({Place.UNKNOWN})
        operators = [name for name in map(str.strip, CHAINED.split(vertex)) if name]
        in_sink = [bool(SINK.search(name)) for name in operators]
        return frozenset(self._of_operators(vertex, in_sink))

    def _of_operators(self, vertex: str, in_sink: Collection[bool]) -> Iterator[Place]:
        if vertex in self._sources:
            yield Place.SOURCE
        elif not all(in_sink):
            yield Place.OPERATOR
        if any(in_sink):
            yield Place.SINK


def _of_name(ends: list[str], topology: Topology) -> frozenset[Place]:
    roles = tuple(map(_role, ends))
    if len(roles) == 1:
        return _of_role(roles[0], topology)
    return _of_connection((roles[0], roles[1]), topology)


def _of_role(role: str, topology: Topology) -> frozenset[Place]:
    service, _, part = role.partition("/")
    if service not in topology.services:
        return frozenset({Place.UNKNOWN})
    runner = job_runner(topology)
    if runner is not None and service == runner[0]:
        is_of_tasks = part == runner[1].parts["worker"]
        return TASKS if is_of_tasks else frozenset({Place.COORDINATOR})
    return frozenset({SYSTEMS.get(topology.services[service].engine, Place.UNKNOWN)})


def _of_connection(
    roles: tuple[str, str], topology: Topology, port: str | int | None = None
) -> frozenset[Place]:
    """Between workers it is an exchange; between a worker and a broker the source, the sink, or,
    where the port does not tell, both; any other connection belongs to its other end."""
    one, other = (_of_role(role, topology) for role in roles)
    if one == other == TASKS:
        return frozenset({Place.EXCHANGE})
    systems = _union({one, other} - {TASKS})
    if TASKS in (one, other) and systems == {Place.BROKER}:
        known = None if port is None else PORTS.get(port)
        return frozenset({Place.SOURCE, Place.SINK} if known is None else {known})
    if Place.COORDINATOR in systems:
        return frozenset({Place.COORDINATOR})
    return systems


def _union(found: Iterable[frozenset[Place]]) -> frozenset[Place]:
    return frozenset().union(*found)


def _role(node: str) -> str:
    return node.rpartition("-")[0]
