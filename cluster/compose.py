"""A topology as one file of Docker Compose, for users who start the cluster manually.

Made from the same plans as a run's own containers: same images, commands, environment, limits and
configuration. Four things differ. Ports are published at the numbers the engines use themselves,
since no run chooses free ones there; links run direct, since no fault acts on them; a job takes
checkpoints by default, since users submit it; and health checks show when a service answers,
which a run finds out from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import PurePosixPath
from typing import Any

import yaml

from streamquake.cluster.cluster import all_nodes
from streamquake.cluster.engines.engine import Engine, NodePlan, PortAllocator, RunsJobs, engine
from streamquake.cluster.images.recipes import BUILT
from streamquake.topologies.model import NodeSpec, Topology

DOCUMENT = "docker-compose.yml"
HEADER = """\
# The topology {name}, to be brought up by hand (Docker Compose 2.23.1 or newer):
#
#     streamquake images build && docker compose up --detach --wait
#
# Written by `streamquake compose {name}`. Write it again rather than change it.
# Links run direct here, past the proxy that faults act on.
"""
HEALTH_CHECK = {"interval": "3s", "timeout": "10s", "retries": 10, "start_period": "120s"}
"""Long enough for a machine on which all the services start at once."""


@dataclass(frozen=True)
class _Node:
    """A node with its engine and what that plans for it."""

    spec: NodeSpec
    engine: Engine
    plan: NodePlan

    @property
    def configs(self) -> dict[str, str]:
        """Path of a file in the container -> what the document calls it. Raises ValueError."""
        names = {path: f"{self.spec.host}-{PurePosixPath(path).name}" for path in self.plan.files}
        if len({*names.values()}) < len(names):
            raise ValueError(f"{self.spec.name}: two configuration files of one name: {[*names]}")
        return names


def compose_document(topology: Topology) -> str:
    """The text of docker-compose.yml, which needs no other file."""
    ports = PortAllocator(host=_next_free(), by_hand=True)
    nodes = [_planned(topology, spec, ports) for spec in all_nodes(topology)]
    document = {
        "name": f"{BUILT.rstrip('/')}-{topology.name}",
        "services": {node.spec.host: _service(node, nodes, ports) for node in nodes},
        "configs": {
            name: {"content": _literal(node.plan.files[path])}
            for node in nodes
            for path, name in node.configs.items()
        },
    }
    header = HEADER.format(name=topology.name)
    return header + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=inf)


def _planned(topology: Topology, spec: NodeSpec, ports: PortAllocator) -> _Node:
    own = engine(topology.services[spec.service].engine)
    return _Node(spec, own, own.plan(topology, spec, ports))


def _service(node: _Node, nodes: Sequence[_Node], ports: PortAllocator) -> dict[str, Any]:
    spec, plan = node.spec, node.plan
    memory = f"{plan.memory_mb}m" if plan.memory_mb else None
    service = {
        "image": plan.image,
        "pull_policy": "never" if plan.image.startswith(BUILT) else None,
        "command": [_literal(word) for word in plan.command],
        "hostname": spec.host,
        "depends_on": {each.spec.host: _condition(each) for each in _awaited(node, nodes)},
        "environment": {
            key: _literal(value) for key, value in {**plan.env, **spec.group.env}.items()
        },
        "ports": [f"127.0.0.1:{ports.host(spec, port)}:{port}" for port in plan.publish],
        "configs": [{"source": name, "target": path} for path, name in node.configs.items()],
        "volumes": [*plan.volumes],
        "tmpfs": [f"{path}:{options}".rstrip(":") for path, options in plan.tmpfs.items()],
        "mem_limit": memory,
        "memswap_limit": memory,  # no swap, as in runs
        "cpus": spec.group.cpus,
        "healthcheck": _health_check(plan),
    }
    return {key: value for key, value in service.items() if value}


def _health_check(plan: NodePlan) -> dict[str, Any]:
    test = ["CMD", *(_literal(word) for word in plan.health)]
    return {"test": test, **HEALTH_CHECK} if plan.health else {}


def _awaited(node: _Node, nodes: Sequence[_Node]) -> list[_Node]:
    """Nodes wait for the first role of their service; that of a service that runs jobs waits for
    the services that run none."""
    first = next(iter(node.engine.roles()))
    if node.spec.role != first:
        return [each for each in nodes if each.spec.role_name == f"{node.spec.service}/{first}"]
    if isinstance(node.engine, RunsJobs):
        return [each for each in nodes if not isinstance(each.engine, RunsJobs)]
    return []


def _condition(awaited: _Node) -> dict[str, str]:
    return {"condition": "service_healthy" if awaited.plan.health else "service_started"}


def _next_free() -> Callable[[NodeSpec, int], int]:
    """Every published port at its own number, the nodes' second, third, ... at the next free."""
    given: dict[tuple[str, int], int] = {}

    def host(node: NodeSpec, port: int) -> int:
        key = (node.name, port)
        if key not in given:
            given[key] = next(n for n in range(port, 65_536) if n not in given.values())
        return given[key]

    return host


def _literal(text: str) -> str:
    """Compose would interpret `$` as the beginning of a variable."""
    return text.replace("$", "$$")


class _Dumper(yaml.SafeDumper):
    """Writes multi-line texts as literal blocks."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Dumper.add_representer(str, _Dumper.represent_text)
