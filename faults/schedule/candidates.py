"""The faults that a schedule can be drawn from: every fault with every target on a topology, as in
YAML."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamquake.cluster.engines.engine import KnowsDuties, engine
from streamquake.faults.fault import Fault, TargetKind
from streamquake.faults.schedule.target import TargetChoice, parse_target, roles_of
from streamquake.topologies.model import Topology

PARAMETER = re.compile(r"\b[A-Z]+\b")
"""A parameter in the notation of a duty, such as ID."""


@dataclass(frozen=True, kw_only=True)
class FaultCandidate:
    """A fault, one target of it, and what it disturbs there."""

    fault: str
    params: Mapping[str, Any]
    target: str
    touches: str
    names: frozenset[str]
    """What it disturbs: nodes, a link, the job or the workload; for a duty, all nodes of its
    role."""
    roles: frozenset[str]
    """The roles of which it takes a node down; empty for a fault that leaves all nodes up."""

    def clashes(self, other: FaultCandidate) -> bool:
        """Whether both at the same time would disturb the same thing, or take down two nodes of a
        role."""
        same = self.touches == other.touches and bool(self.names & other.names)
        return same or bool(self.roles & other.roles)


def candidates_of(fault: type[Fault], topology: Topology) -> Iterator[FaultCandidate]:
    """A fault with its example parameters, on every target of its kind."""
    for target in dict.fromkeys((*targets(fault.target_kind, topology), *_usual(fault, topology))):
        choice = parse_target(target)
        roles = roles_of(choice, topology) if fault.touches == "process" else ()
        yield FaultCandidate(
            fault=fault.name,
            params=dict(fault.example),
            target=target,
            touches=fault.touches,
            names=frozenset(_names(choice, topology)),
            roles=frozenset(roles),
        )


def targets(kind: TargetKind, topology: Topology) -> Iterator[str]:
    """Every single target of a kind; nodes by name, so that overlaps are known beforehand."""
    match kind:
        case "nodes":
            yield from (node.name for node in topology.nodes())
            yield from (f"the {usage}" for usage in _duties(topology))
        case "links":
            yield from (f"link {name}" for name in topology.links)
        case "pairs":
            yield from _pairs(topology)
        case "workload":
            yield "the workload"
        case "job":
            yield "the job"


def _usual(fault: type[Fault], topology: Topology) -> Iterator[str]:
    """Its usual target, for a fault that always affects several nodes at once."""
    choice = parse_target(fault.usual)
    if choice.how == "all of" and choice.name in topology.roles():
        yield fault.usual


def _duties(topology: Topology) -> Iterator[str]:
    """Duties without a parameter, such as `active jobmanager`."""
    for service in topology.services.values():
        duty_engine = engine(service.engine)
        if isinstance(duty_engine, KnowsDuties):
            for duty in duty_engine.duties():
                if not PARAMETER.search(duty.usage):
                    yield duty.usage


def _pairs(topology: Topology) -> Iterator[str]:
    """Pairs of nodes whose roles are connected by a link (possibly the same role), in every
    direction."""
    nodes: dict[str, list[str]] = {}
    for node in topology.nodes():
        nodes.setdefault(node.role_name, []).append(node.name)
    for roles in dict.fromkeys((link.from_, link.to) for link in topology.links.values()):
        ends = [nodes.get(role, []) for role in roles]
        for source, target in itertools.product(*ends):
            if source != target:
                yield f"between {source} and {target}"
                yield f"from {source} to {target}"
                yield f"from {target} to {source}"


def _names(choice: TargetChoice, topology: Topology) -> Iterator[str]:
    match choice.how:
        case "node" | "link" | "workload" | "job":
            yield choice.name
        case "between" | "from":
            for end in choice.ends:
                yield from _names(end, topology)
        case _:
            roles = roles_of(choice, topology)
            yield from (node.name for node in topology.nodes() if node.role_name in roles)
