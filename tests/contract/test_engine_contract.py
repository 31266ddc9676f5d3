"""What every registered engine must plan; no container is asked. A new one is covered by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from streamquake.cluster.engines.engine import Engine, NodePlan, PortAllocator, RunsJobs, engines
from streamquake.cluster.images.recipes import UnknownImage, all_recipes, recipe
from streamquake.topologies.model import NodeSpec, Topology
from tests.contract.member_rules import undescribed
from tests.echo import Echo

SERVICE = "tried"


def whole(runs: Engine) -> Topology:
    """One node of every role that the engine knows, beside the stores that others write to."""
    roles = dict.fromkeys(runs.roles(), 1)
    services: dict[str, Any] = {
        "broker": {"engine": "kafka", "nodes": {"broker": 1}},
        "store": {"engine": "hdfs", "nodes": {"namenode": 1, "datanode": 1}},
        SERVICE: {"engine": runs.name, "nodes": roles},
    }
    return Topology.model_validate({"name": "whole", "services": services})


def wrong_ports(runs: Engine) -> Iterator[str]:
    """Links name ports; two names of one would be two links of one path."""
    for name, port in runs.ports().items():
        if not 0 < port < 65536:
            yield f"port {name} is {port}"
    if twice := [port for port, count in Counter(runs.ports().values()).items() if count > 1]:
        yield f"several names for {twice}"


def wrong_roles(runs: Engine) -> Iterator[str]:
    if not runs.roles() or not all(runs.roles().values()):
        yield "a role is not described"
    if isinstance(runs, RunsJobs):
        if not set(runs.parts.values()) <= set(runs.roles()):
            yield f"its parts {dict(runs.parts)} are no roles"
        if set(runs.parts) != {"worker", "coordinator"}:
            yield f"it has the parts {sorted(runs.parts)}"


def wrong_images(runs: Engine, made: Topology) -> Iterator[str]:
    """What is built is what the nodes run, and there is a recipe for it."""
    tags = set()
    for image in runs.images(made, SERVICE):
        kind, _, version = image.partition(":")
        try:
            tags.add(recipe(kind, version or None).tag)
        except UnknownImage as error:
            yield str(error)
    for node, plan in plans(runs, made).items():
        if plan.image not in tags:
            yield f"{node} runs {plan.image}, which is not built for it"


def wrong_plans(runs: Engine, made: Topology) -> Iterator[str]:
    for place, message in runs.problems(made, SERVICE):
        yield f"refuses one node of every role: {place}: {message}"
    first, second = plans(runs, made), plans(runs, made)
    if first != second:
        yield "plans the same node in two ways"
    for node, plan in first.items():
        if any(not 0 < port < 65536 for port in plan.publish):
            yield f"{node} publishes {plan.publish}"
        if any(not path.startswith("/") for path in plan.files):
            yield f"{node} has a file without a place"


def plans(runs: Engine, made: Topology) -> Mapping[str, NodePlan]:
    ports = PortAllocator(host=lambda node, port: 20_000 + port + node.ordinal)
    nodes = [node for node in made.nodes() if node.service == SERVICE]
    nodes += runs.extra_nodes(made, SERVICE)
    return {node.name: runs.plan(made, node, ports) for node in nodes}


def broken(runs: Engine) -> list[str]:
    made = whole(runs)
    return [
        *undescribed(type(runs)),
        *wrong_ports(runs),
        *wrong_roles(runs),
        *wrong_images(runs, made),
        *wrong_plans(runs, made),
    ]


@pytest.mark.parametrize("name", sorted(engines))
def test_an_engine_keeps_the_contract(name: str) -> None:
    assert broken(engines[name]()) == []


@pytest.mark.parametrize("name", sorted(engines))
def test_every_version_that_it_can_be_asked_for_has_an_image(name: str) -> None:
    runs = engines[name]()
    for known in all_recipes():
        if known.kind != name:
            continue
        made = whole(runs)
        service = made.services[SERVICE].model_copy(update={"version": known.version})
        made = made.model_copy(update={"services": {**made.services, SERVICE: service}})
        assert list(wrong_images(runs, made)) == []
        assert list(runs.problems(made, SERVICE)) == []


class Odd(Echo):
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

    def images(self, topology: Topology, service: str) -> tuple[str, ...]:
        return ("nothing",)

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


def test_an_engine_that_keeps_nothing_of_it_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines._members, Odd.name, Odd)

    found = broken(engines[Odd.name]())

    for part in (
        "no docstring",
        "port third is 70000",
        "several names for [7000]",
        "not described",
        "are no roles",
        "has the parts ['worker']",
        "no image kind",
        "is not built for it",
        "refuses one node",
        "in two ways",
        "publishes (0,)",
        "without a place",
    ):
        assert any(part in line for line in found), (part, found)


def test_a_whole_engine_is_not_found_out(echo_engine: None) -> None:
    assert broken(engines[Echo.name]()) == []
