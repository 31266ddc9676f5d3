"""Pydantic's errors as messages: the place, the expected and the received value."""

from __future__ import annotations

import pytest

from streamquake.topologies.model import Topology
from streamquake.topologies.parsing import fields_at, parse, value_text
from streamquake.topologies.yaml_document import parse_document

VALID = """\
name: small
services:
  kafka: {engine: kafka, nodes: {broker: 1}}
  flink:
    engine: flink
    version: 1.20
    nodes: {jobmanager: 1, taskmanager: {count: 2, slots: 2, cpus: 1}}
    config: {a.b: 2s, c: 1.5, d: true}
links:
  sink: {from: flink/taskmanager, to: kafka/broker, port: output}
"""


def problems_of(text: str) -> list[str]:
    _, problems = parse(Topology, parse_document(text, "t.yaml"))
    return [str(problem) for problem in problems]


def test_a_valid_document_is_parsed() -> None:
    topology, problems = parse(Topology, parse_document(VALID, "t.yaml"))

    assert problems == []
    assert topology is not None
    assert topology.services["flink"].version == "1.20"
    assert topology.services["flink"].nodes["jobmanager"].count == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "count: 2",
            "count: two",
            't.yaml:7: services.flink.nodes.taskmanager.count: expected a whole number, got "two"',
        ),
        (
            "slots: 2",
            "memory_mb: 2g",
            "t.yaml:7: services.flink.nodes.taskmanager.memory_mb: "
            'expected a whole number of MiB, got "2g"',
        ),
        (
            "slots: 2",
            "memory_mb: 1",
            "t.yaml:7: services.flink.nodes.taskmanager.memory_mb: "
            "expected a number of MiB of at least 64, got 1",
        ),
        (
            "slots: 2",
            "slotss: 2",
            "t.yaml:7: services.flink.nodes.taskmanager.slotss: unknown key "
            '"slotss"; did you mean "slots"? known: clock, count, cpus, disk_mb, env, image, '
            "memory_mb, rules, slots, supervised",
        ),
        (
            "cpus: 1",
            "cpus: yes",
            't.yaml:7: services.flink.nodes.taskmanager.cpus: expected a number, got "yes"',
        ),
        ("name: small", "name: 7", 't.yaml:1: name: expected text, got 7; write it in quotes: "7"'),
        (
            "name: small",
            "name: Small One",
            "t.yaml:1: name: expected lower-case letters, digits "
            'and dashes (^[a-z0-9][a-z0-9-]*$), got "Small One"',
        ),
        ("name: small\n", "", "t.yaml:1: expected the key `name`, which is missing"),
        (
            "to: kafka/broker, ",
            "",
            "t.yaml:10: links.sink: expected the key `to`, which is missing",
        ),
        (
            "d: true",
            "db.password: [1]",
            "t.yaml:8: services.flink.config.db.password: "
            "expected text or a number or true or false, got a value that is not shown",
        ),
        (
            "nodes: {broker: 1}",
            "nodes: 'a.token: x'",
            "t.yaml:3: services.kafka.nodes: "
            "expected keys with values, got a value that is not shown",
        ),
        ("to: kafka/broker", "to: [a]", 't.yaml:10: links.sink.to: expected text, got ["a"]'),
        (
            "d: true",
            "d: [1]",
            "t.yaml:8: services.flink.config.d: "
            "expected text or a number or true or false, got [1]",
        ),
        (
            "nodes: {broker: 1}",
            "nodes: 3",
            "t.yaml:3: services.kafka.nodes: expected keys with values, got 3",
        ),
        (
            "nodes: {broker: 1}",
            "nodes: {broker: }",
            "t.yaml:3: services.kafka.nodes.broker: expected keys with values, got nothing",
        ),
    ],
)
def test_a_problem_has_a_readable_message(old: str, new: str, message: str) -> None:
    assert old in VALID

    assert problems_of(VALID.replace(old, new, 1))[0] == message


def test_all_problems_are_reported_at_once() -> None:
    text = VALID.replace("engine: kafka", "enigne: kafka").replace("count: 2", "count: 0")
    text = text.replace("port: output", "prot: output")

    places = [line.split(": ")[1] for line in problems_of(text)]
    assert places == [
        "services.kafka",
        "services.kafka.enigne",
        "services.flink.nodes.taskmanager.count",
        "links.sink",
        "links.sink.prot",
    ]


def test_the_model_without_its_invalid_parts_is_returned() -> None:
    text = VALID.replace("count: 2", "count: two").replace("port: output", "port: [1]")
    topology, problems = parse(Topology, parse_document(text, "t.yaml"))

    assert len(problems) == 2
    assert topology is not None
    assert topology.links == {}
    assert topology.services["flink"].nodes["taskmanager"].slots == 2


def test_no_model_is_returned_without_valid_parts() -> None:
    topology, problems = parse(Topology, parse_document("services: 3", "t.yaml"))

    assert topology is None
    assert len(problems) == 2


def test_long_values_are_shortened() -> None:
    assert len(value_text("x" * 500)) == 60
    assert value_text(None) == "nothing"


def test_fields_of_nested_models_are_known() -> None:
    assert fields_at(Topology, ("links", "any")) == ("from", "to", "port")
    assert "slots" in fields_at(Topology, ("services", "x", "nodes", "y"))
    assert fields_at(Topology, ("services",)) == ()
