"""The contract of every registered engine, without containers; a new engine is covered
automatically."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from streamquake.cluster.engines.engine import Engine, NodePlan, PortAllocator, RunsJobs, engines
from streamquake.cluster.images.recipes import ImageRecipe, all_recipes
from streamquake.topologies.model import NodeSpec, Topology
from tests.contract.member_rules import without_docstring
from tests.echo import Echo

SERVICE = "tested"
OWN_IMAGE: dict[str, dict[str, Any]] = {"container": {"image": "any", "ports": {"sql": 5432}}}
"""The keys of engines for which no image is built: their topologies name one."""


def complete_topology(tested: Engine) -> Topology:
    """A topology with one node of every role of the engine, and the services that other engines
    write to."""
    roles = dict.fromkeys(tested.roles(), 1)
    tested_service = {"engine": tested.name, "nodes": roles, **OWN_IMAGE.get(tested.name, {})}
    services: dict[str, Any] = {
        "broker": {"engine": "kafka", "nodes": {"broker": 1}},
        "store": {"engine": "hdfs", "nodes": {"namenode": 1, "datanode": 1}},
        SERVICE: tested_service,
    }
    return Topology.model_validate({"name": "complete", "services": services})


def wrong_ports(tested: Engine) -> Iterator[str]:
    """Links name ports; with two names of one port, two links would have the same path."""
    for name, port in tested.ports().items():
        if not 0 < port < 65536:
            yield f"port {name} is {port}"
    if shared := [port for port, count in Counter(tested.ports().values()).items() if count > 1]:
        yield f"several names for {shared}"


def wrong_roles(tested: Engine) -> Iterator[str]:
    if not tested.roles() or not all(tested.roles().values()):
        yield "a role is not described"
    if isinstance(tested, RunsJobs):
        if not set(tested.parts.values()) <= set(tested.roles()):
            yield f"its parts {dict(tested.parts)} are no roles"
        if set(tested.parts) != {"worker", "coordinator"}:
            yield f"it has the parts {sorted(tested.parts)}"


def wrong_images(tested: Engine, topology: Topology) -> Iterator[str]:
    """The nodes run only images that are built for the engine, each of which has a recipe, or the
    image that their topology names."""
    named = topology.services[SERVICE].image
    tags = {named or "", *(image.tag for image in tested.images(topology, SERVICE))}
    for node, plan in plans(tested, topology).items():
        if plan.image not in tags:
            yield f"{node} runs {plan.image}, which is not built for it"


def wrong_plans(tested: Engine, topology: Topology) -> Iterator[str]:
    for place, message in tested.problems(topology, SERVICE):
        yield f"rejects one node of every role: {place}: {message}"
    first, second = plans(tested, topology), plans(tested, topology)
    if first != second:
        yield "plans the same node in two ways"
    for node, plan in first.items():
        if any(not 0 < port < 65536 for port in plan.publish):
            yield f"{node} publishes {plan.publish}"
        if any(not path.startswith("/") for path in plan.files):
            yield f"{node} has a file without an absolute path"


def plans(tested: Engine, topology: Topology) -> Mapping[str, NodePlan]:
    ports = PortAllocator(host=lambda node, port: 20_000 + port + node.ordinal)
    nodes = [node for node in topology.nodes() if node.service == SERVICE]
    nodes += tested.extra_nodes(topology, SERVICE)
    return {node.name: tested.plan(topology, node, ports) for node in nodes}


def violations(tested: Engine) -> list[str]:
    topology = complete_topology(tested)
    return [
        *without_docstring(type(tested)),
        *wrong_ports(tested),
        *wrong_roles(tested),
        *wrong_images(tested, topology),
        *wrong_plans(tested, topology),
    ]


@pytest.mark.parametrize("name", sorted(engines))
def test_an_engine_fulfils_the_contract(name: str) -> None:
    assert violations(engines[name]()) == []


@pytest.mark.parametrize("name", sorted(engines))
def test_every_version_of_an_engine_has_an_image(name: str) -> None:
    tested = engines[name]()
    for known in all_recipes():
        if known.kind != name:
            continue
        topology = complete_topology(tested)
        service = topology.services[SERVICE].model_copy(update={"version": known.version})
        topology = topology.model_copy(update={"services": {**topology.services, SERVICE: service}})
        assert list(wrong_images(tested, topology)) == []
        assert list(tested.problems(topology, SERVICE)) == []


class IncompleteEngine(Echo):
    name: ClassVar[str] = "odd"
    programs: ClassVar[tuple[str, ...]] = ()
    parts: ClassVar[Mapping[str, str]] = {"worker": "unknown"}
    planned: ClassVar[list[str]] = []

    def roles(self) -> Mapping[str, str]:
        return {"server": ""}

    def ports(self) -> Mapping[str, int]:
        return {"one": 7000, "other": 7000, "third": 70_000}

    def problems(self, topology: Topology, service: str) -> list[tuple[tuple[str, ...], str]]:
        return [(("nodes",), "too few")]

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        return ()

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        self.planned.append(node.name)
        return NodePlan(
            image="other/image",
            command=(str(len(self.planned)),),
            publish=(0,),
            files={"relative": ""},
        )

    def _job(self, *_: Any) -> Any: ...

    checkpointed = submit = job_pending = drain_pending = follow = cancel = _job


def test_every_violation_of_the_contract_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines._members, IncompleteEngine.name, IncompleteEngine)

    found = violations(engines[IncompleteEngine.name]())

    for part in (
        "no docstring",
        "port third is 70000",
        "several names for [7000]",
        "not described",
        "are no roles",
        "has the parts ['worker']",
        "is not built for it",
        "rejects one node",
        "in two ways",
        "publishes (0,)",
        "without an absolute path",
    ):
        assert any(part in line for line in found), (part, found)


def test_an_engine_without_violations_passes(echo_engine: None) -> None:
    assert violations(engines[Echo.name]()) == []
