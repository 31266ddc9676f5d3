"""Targets: which nodes or links a fault strikes, chosen when it strikes.

The grammar: `one of ROLE`, `all of ROLE`, `NODE`, `link NAME`, where a role is written
`flink/taskmanager` and a node `flink/taskmanager-2`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import Aim, LinkTarget, Target
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import did_you_mean

How = Literal["one of", "all of", "node", "link"]


@dataclass(frozen=True, kw_only=True)
class TargetChoice:
    """A target as written: how to choose, and among what."""

    how: How
    name: str

    @property
    def aim(self) -> Aim:
        return "links" if self.how == "link" else "nodes"


def parse_target(text: str) -> TargetChoice:
    """Read a target. Raises ValueError that shows the grammar."""
    match text.split():
        case ["one", "of", name]:
            return TargetChoice(how="one of", name=name)
        case ["all", "of", name]:
            return TargetChoice(how="all of", name=name)
        case ["link", name]:
            return TargetChoice(how="link", name=name)
        case [name] if "/" in name:
            return TargetChoice(how="node", name=name)
    raise ValueError(
        'expected "one of ROLE", "all of ROLE", NODE or "link NAME" '
        f'(such as "one of flink/taskmanager"), got "{text}"'
    )


def target_problem(choice: TargetChoice, topology: Topology) -> str | None:
    """Why the choice matches nothing in the topology, or None when it matches."""
    known: tuple[str, ...]
    match choice.how:
        case "link":
            known, what = tuple(topology.links), "link"
        case "node":
            known, what = tuple(node.name for node in topology.nodes()), "node"
        case _:
            known, what = topology.roles(), "role"
    if choice.name in known:
        return None
    return f'no {what} is called "{choice.name}"{did_you_mean(choice.name, known)}'


def resolve(choice: TargetChoice, cluster: Cluster, rng: random.Random) -> tuple[Target, ...]:
    """The targets, now. `one of` draws with the run's own random numbers.

    Raises LookupError when nothing matches any more.
    """
    if choice.how == "link":
        return (LinkTarget(name=choice.name, paths=cluster.links.of(choice.name)),)
    if choice.how == "node":
        return (cluster.node(choice.name),)
    nodes = cluster.of_role(choice.name)
    if not nodes:
        raise LookupError(f"no node of role {choice.name} is there")
    return nodes if choice.how == "all of" else (rng.choice(nodes),)


def find_target(name: str, cluster: Cluster) -> Target:
    """The target of this name as it is now (healing resolves again). Raises LookupError."""
    if name in cluster.nodes:
        return cluster.node(name)
    if paths := cluster.links.of(name):
        return LinkTarget(name=name, paths=paths)
    raise LookupError(f"{name} is gone")
