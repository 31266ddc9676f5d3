"""Targets: what a fault is injected into, chosen at the injection.

The grammar, where a role is written `flink/taskmanager` and a node `flink/taskmanager-2`:

    nodes     NODE | one of ROLE | all of ROLE | all but NODE | the DUTY
    links     link NAME
    pairs     between NODES and NODES (both ways) | from NODES to NODES (one way)
    workload  the workload
    job       the job

A DUTY is the current function of a node, in the terms of its engine: `the leader of partition 0 of
input`. `worker` and `coordinator` without a service are the roles of the engine that runs the job,
so that one schedule fits several engines: `one of worker`, `coordinator-1`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import (
    FindsRunningJobs,
    KnowsDuties,
    NodeDuty,
    engine,
    job_runner,
)
from streamquake.cluster.job import CurrentJob
from streamquake.cluster.node import Node
from streamquake.faults.fault import (
    JobTarget,
    LinkTarget,
    PairTarget,
    Target,
    TargetKind,
    WorkloadTarget,
)
from streamquake.topologies.model import Service, Topology
from streamquake.topologies.problems import did_you_mean

How = Literal[
    "one of", "all of", "all but", "node", "the", "link", "between", "from", "workload", "job"
]
TARGET_KINDS: dict[How, TargetKind] = {
    "link": "links",
    "between": "pairs",
    "from": "pairs",
    "workload": "workload",
    "job": "job",
}
ENGINE_ROLE = re.compile(
    r"(^|\b(?:of|but|between|and|from|to) )(worker|coordinator)(-\d+)?(?![\w/-])"
)
SEPARATORS = {"between": "and", "from": "to"}
"""First word of a pair -> the word between its two ends."""


@dataclass(frozen=True, kw_only=True)
class TargetChoice:
    """A target as written: how to choose, and among what. A pair has two `ends` of nodes."""

    how: How
    name: str
    ends: tuple[TargetChoice, ...] = ()

    @property
    def target_kind(self) -> TargetKind:
        return TARGET_KINDS.get(self.how, "nodes")


def on_topology(text: str, topology: Topology) -> str:
    """A target with `worker` and `coordinator` replaced by the roles of this topology."""
    found = job_runner(topology)
    if found is None:
        return text
    service, runner = found
    return ENGINE_ROLE.sub(
        lambda part: f"{part[1]}{service}/{runner.parts[part[2]]}{part[3] or ''}", text
    )


def parse_target(text: str) -> TargetChoice:
    """Read a target. Raises ValueError that shows the grammar."""
    match text.split():
        case ["the", "workload"]:
            return TargetChoice(how="workload", name=text)
        case ["the", "job"]:
            return TargetChoice(how="job", name=text)
        case ["link", name]:
            return TargetChoice(how="link", name=name)
        case ["between" | "from" as how, *words] if SEPARATORS[how] in words:
            middle = words.index(SEPARATORS[how])
            ends = (_nodes(words[:middle], text), _nodes(words[middle + 1 :], text))
            return TargetChoice(how=how, name=text, ends=ends)
        case words:
            return _nodes(words, text)


def _nodes(words: list[str], text: str) -> TargetChoice:
    match words:
        case ["one" | "all" as many, "of", name]:
            return TargetChoice(how="one of" if many == "one" else "all of", name=name)
        case ["all", "but", name] if "/" in name:
            return TargetChoice(how="all but", name=name)
        case ["the", *duty] if duty:
            return TargetChoice(how="the", name=" ".join(duty))
        case [name] if "/" in name:
            return TargetChoice(how="node", name=name)
    raise ValueError(
        'expected NODE, "one of ROLE", "all of ROLE", "all but NODE", "the DUTY", "link NAME", '
        '"between NODES and NODES", "from NODES to NODES", "the workload" or "the job" '
        f'(such as "one of flink/taskmanager"), got "{text}"'
    )


def target_problem(choice: TargetChoice, topology: Topology) -> str | None:
    """Why the choice matches nothing in the topology; None when it matches."""
    known: tuple[str, ...]
    match choice.how:
        case "workload" | "job":
            return None
        case "between" | "from":
            of_ends = (target_problem(end, topology) for end in choice.ends)
            return next(filter(None, of_ends), None) or _pair_problem(choice, topology)
        case "the":
            return _duty_problem(choice.name, topology)
        case "link":
            known, what = tuple(topology.links), "link"
        case "node" | "all but":
            known, what = tuple(node.name for node in topology.nodes()), "node"
        case _:
            known, what = topology.roles(), "role"
    if choice.name in known:
        return _empty_problem(choice, topology)
    return f'no {what} is called "{choice.name}"{did_you_mean(choice.name, known)}'


def _empty_problem(choice: TargetChoice, topology: Topology) -> str | None:
    """Why a choice among existing names matches no node, or None."""
    if choice.how != "all but" or node_names(choice, topology):
        return None
    role = choice.name.rpartition("-")[0]
    return (
        f'"all but {choice.name}" matches no node: {role} has only that one; raise its `count`, or '
        "name another target"
    )


def _pair_problem(choice: TargetChoice, topology: Topology) -> str | None:
    """Why the ends of a pair can never be two nodes, or None."""
    sources, targets = (node_names(end, topology) for end in choice.ends)
    if sources is None or targets is None or len(sources | targets) > 1:
        return None
    return (
        f'"{choice.name}" is one node, {min(sources | targets)}, and a pair needs two different '
        "ones; name another node at one end"
    )


def node_names(choice: TargetChoice, topology: Topology) -> frozenset[str] | None:
    """The nodes that a choice of nodes may resolve to; None for a duty, known only during the
    run."""
    match choice.how:
        case "the":
            return None
        case "node":
            return frozenset({choice.name})
        case _:
            roles = roles_of(choice, topology)
            named = (node.name for node in topology.nodes() if node.role_name in roles)
            excluded = choice.name if choice.how == "all but" else None
            return frozenset(name for name in named if name != excluded)


def roles_of(choice: TargetChoice, topology: Topology) -> tuple[str, ...]:
    """The roles whose nodes the choice may resolve to; for a link, those at its ends."""
    match choice.how:
        case "workload":
            return ()
        case "job":
            return _job_roles(topology)
        case "between" | "from":
            return tuple(role for end in choice.ends for role in roles_of(end, topology))
        case "link":
            return (topology.links[choice.name].from_, topology.links[choice.name].to)
        case "the":
            return tuple(role for role, _ in _duties(choice.name, topology))
        case "node" | "all but":
            return (choice.name.rpartition("-")[0],)
        case _:
            return (choice.name,)


def outside_target(
    choice: TargetChoice, names: Sequence[str], topology: Topology
) -> tuple[str, ...]:
    """The names to which a choice can never resolve. A choice of one node resolves to the first
    name only."""
    if choice.how in ("link", "workload", "job"):
        return tuple(name for name in names if name != choice.name)
    if choice.how in ("between", "from"):
        return tuple(name for name in names if not _is_pair(choice, name, topology))
    others = [name for name in names if not _may_be(choice, name, topology)]
    return tuple(others) or (tuple(names[1:]) if choice.how in ("one of", "node") else ())


def left_out_of_target(
    choice: TargetChoice, names: Sequence[str], topology: Topology
) -> tuple[str, ...]:
    """The nodes, or pairs of nodes, to which a choice always resolves and that are not among the
    names. None where the choice depends on the run."""
    return tuple(name for name in _always_in(choice, topology) if name not in names)


def _always_in(choice: TargetChoice, topology: Topology) -> tuple[str, ...]:
    """The nodes, or pairs of nodes, to which a choice always resolves."""
    if choice.how in ("between", "from"):
        arrow = "<->" if choice.how == "between" else "->"
        sources, targets = (_always_in(end, topology) for end in choice.ends)
        return tuple(f"{one}{arrow}{other}" for one in sources for other in targets if one != other)
    if choice.how in ("all of", "all but"):
        return tuple(node.name for node in topology.nodes() if _may_be(choice, node.name, topology))
    return (choice.name,) if choice.how == "node" else ()


def _is_pair(choice: TargetChoice, name: str, topology: Topology) -> bool:
    if ("<->" in name) != (choice.how == "between"):
        return False
    ends = re.split("<->|->", name)
    return len(ends) == 2 and all(map(_may_be, choice.ends, ends, (topology, topology)))


def _may_be(choice: TargetChoice, node: str, topology: Topology) -> bool:
    if choice.how == "node":
        return node == choice.name
    excluded = choice.how == "all but" and node == choice.name
    return not excluded and node.rpartition("-")[0] in roles_of(choice, topology)


def resolve(
    choice: TargetChoice, cluster: Cluster, rng: random.Random, avoiding: Collection[str] = ()
) -> tuple[Target, ...]:
    """The targets at this moment, at least one. `one of` draws with the run's own random numbers,
    and another node than those to avoid where there is one.

    Raises LookupError when nothing matches.
    """
    if not (found := _matching_targets(choice, cluster, rng, avoiding)):
        raise LookupError(f'"{choice.how} {choice.name}" matches no node at this moment')
    return found


def _matching_targets(
    choice: TargetChoice, cluster: Cluster, rng: random.Random, avoiding: Collection[str]
) -> tuple[Target, ...]:
    match choice.how:
        case "link" | "workload" | "job":
            return (find_target(choice.name, cluster),)
        case "between" | "from":
            sources, targets = (_matching_nodes(end, cluster, rng, avoiding) for end in choice.ends)
            pairs = tuple(
                PairTarget(source=source, target=target, both_ways=choice.how == "between")
                for source in sources
                for target in targets
                if source.name != target.name
            )
            if not pairs:
                raise LookupError(f'"{choice.name}" matches no two nodes at this moment')
            return pairs
        case _:
            return _matching_nodes(choice, cluster, rng, avoiding)


def find_target(name: str, cluster: Cluster) -> Target:
    """The target of this name at this moment; a heal resolves it again. Raises LookupError."""
    if name in cluster.nodes:
        return cluster.node(name)
    if paths := cluster.links.of(name):
        return LinkTarget(name=name, paths=paths)
    if name == "the workload" and cluster.run.steering is not None:
        return WorkloadTarget(steering=cluster.run.steering)
    if name == "the job":
        return find_job(cluster)
    source, arrow, target = re.split("(<->|->)", name, maxsplit=1) if "->" in name else ("", "", "")
    if source in cluster.nodes and target in cluster.nodes:
        return PairTarget(
            source=cluster.node(source), target=cluster.node(target), both_ways=arrow == "<->"
        )
    raise LookupError(f"{name} does not exist, or was removed")


def find_job(cluster: Cluster) -> JobTarget:
    """The current job. Raises LookupError."""
    return JobTarget(job=cluster.run.job or _only_job(cluster))


def _only_job(cluster: Cluster) -> CurrentJob:
    """The only job of a cluster, which another process submitted. Raises LookupError."""
    for service, declared in cluster.topology.services.items():
        job_finder = engine(declared.engine)
        if isinstance(job_finder, FindsRunningJobs):
            return CurrentJob(service=service, id=job_finder.only_job(cluster, service))
    raise LookupError(f"{cluster.topology.name} has no engine that runs jobs")


def _matching_nodes(
    choice: TargetChoice, cluster: Cluster, rng: random.Random, avoiding: Collection[str]
) -> tuple[Node, ...]:
    if choice.how == "node":
        return (cluster.node(choice.name),)
    if choice.how == "all but":
        role = choice.name.rpartition("-")[0]
        return tuple(node for node in cluster.of_role(role) if node.name != choice.name)
    if choice.how == "the":
        return _nodes_on_duty(choice.name, cluster)
    nodes = cluster.of_role(choice.name)
    if not nodes:
        raise LookupError(f"there is no node of role {choice.name}")
    if choice.how == "all of":
        return nodes
    return (rng.choice([node for node in nodes if node.name not in avoiding] or nodes),)


def _nodes_on_duty(duty: str, cluster: Cluster) -> tuple[Node, ...]:
    for role, finder in _duties(duty, cluster.topology):
        names = finder.on_duty(cluster, role.partition("/")[0], duty)
        return tuple(cluster.node(name) for name in names)
    raise LookupError(f'no engine knows "the {duty}"')


def _duties(duty: str, topology: Topology) -> Iterator[tuple[str, KnowsDuties]]:
    """The roles that have a node with this duty, and for each the engine that can find the node."""
    for service, declared in topology.services.items():
        finder = engine(declared.engine)
        if isinstance(finder, KnowsDuties):
            for known in finder.duties():
                if re.fullmatch(known.pattern, duty) and _has_enough_nodes(known, declared):
                    yield f"{service}/{known.role}", finder


def _has_enough_nodes(duty: NodeDuty, service: Service) -> bool:
    """Whether a service has as many nodes of the role as the duty needs."""
    group = service.nodes.get(duty.role)
    return group is not None and group.count >= duty.among


def _job_roles(topology: Topology) -> tuple[str, ...]:
    """The roles of the service that runs the job."""
    found = job_runner(topology)
    return tuple(r for r in topology.roles() if found and r.partition("/")[0] == found[0])


def _duty_problem(duty: str, topology: Topology) -> str | None:
    if any(_duties(duty, topology)):
        return None
    engines = ((engine(service.engine), service) for service in topology.services.values())
    known = [
        f'"the {known.usage}"'
        for finder, service in engines
        if isinstance(finder, KnowsDuties)
        for known in finder.duties()
        if _has_enough_nodes(known, service)
    ]
    return f'no engine of {topology.name} knows "the {duty}"; known: {", ".join(known) or "none"}'
