"""The models of the schemas accept every shipped document, and reject wrong ones."""

from __future__ import annotations

from functools import cache

import pytest
from pydantic import BaseModel, ValidationError

from streamquake.harness.campaign.suite.loader import SUITES
from streamquake.harness.experiment.loader import (
    EXPERIMENTS,
    experiment_document,
    find_experiment,
    load_experiment,
)
from streamquake.harness.schema.schemas import MODELS
from streamquake.topologies.base_documents import KEY
from streamquake.topologies.loader import find_topology
from streamquake.topologies.named_files import SHIPPED, shipped_file, shipped_names
from streamquake.topologies.yaml_document import frozen, parse_document, read_document

EXPERIMENT = "name: x\ntopology: kafka-only\nworkload: {numbered: {records: 9, rate_per_s: 1}}\n"
STEP = EXPERIMENT + "faults: [{%s}]\n"
AT = "target: kafka/broker-1, at_s: 1"
TOPOLOGY = "name: t\nservices: {kafka: {engine: kafka, nodes: {broker: %s}}}\n"


@cache
def model_of(kind: str) -> type[BaseModel]:
    return MODELS[kind]()


def wrong_places(kind: str, text: str) -> set[str]:
    """The parts of a document that its model rejects."""
    try:
        model_of(kind).model_validate(parse_document(text, "x.yaml").data)
    except ValidationError as error:
        return {str(part) for detail in error.errors() for part in detail["loc"]} | {""}
    return set()


@pytest.mark.parametrize("name", shipped_names(SHIPPED, ".yaml"))
def test_every_shipped_topology_is_valid(name: str) -> None:
    model_of("topology").model_validate(find_topology(name).data)


def test_every_shipped_experiment_is_valid() -> None:
    model, names = model_of("experiment"), shipped_names(EXPERIMENTS, ".yaml")
    assert len(names) > 40

    for name in names:
        written = read_document(find_experiment(name)).data
        whole = frozen(experiment_document(load_experiment(name, seed=1)))
        builds_on_another = KEY in written or KEY in written["topology"]
        model.model_validate(whole if builds_on_another else written)


@pytest.mark.parametrize("name", shipped_names(SUITES, ".yaml"))
def test_every_shipped_suite_is_valid(name: str) -> None:
    path = shipped_file(name, SUITES, ".yaml")
    assert path is not None

    model_of("suite").model_validate(read_document(path).data)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("topology", TOPOLOGY % "3"),
        ("topology", TOPOLOGY % "{count: 3, memory_mb: 512}"),
        ("topology", "name: t\nservices: {flink: {engine: flink, version: 1.20, nodes: {}}}\n"),
        ("topology", "name: t\nservices: {k: {engine: kafka, endpoint: 'localhost:1'}}\n"),
        ("experiment", EXPERIMENT),
        ("experiment", EXPERIMENT.replace("kafka-only", "beside/mine.yaml")),
        ("experiment", STEP % f"kill: {{}}, {AT}, for_s: 2"),
        ("experiment", STEP % f"kill: , {AT}"),
        ("experiment", STEP % f"stop_the_world: {{}}, {AT}"),
        ("experiment", STEP % "kill: {}, target: a, when: {event: checkpoint triggered, nth: 3}"),
        ("experiment", STEP % "kill: {}, target: a, when: {effect_of: 1}"),
        ("experiment", STEP % "kill: {}, target: a, when: {flink: {event: drained}}"),
        ("experiment", EXPERIMENT + "checks: [exactly_once, {recovery: {within_s: 60}}]\n"),
        ("experiment", EXPERIMENT + "checks: [{recovery: }]\n"),
        ("experiment", EXPERIMENT + "draw: {profile: 'single:kill', without: [pause]}\n"),
        ("experiment", EXPERIMENT + "expect: {exactly_once: [lost, duplicated]}\n"),
        ("suite", "name: s\nrows: [{experiment: quickstart, repeats: 3}]\n"),
    ],
)
def test_the_forms_that_the_loaders_read_are_valid(kind: str, text: str) -> None:
    assert wrong_places(kind, text) == set()


@pytest.mark.parametrize(
    ("kind", "text", "place"),
    [
        ("topology", TOPOLOGY % "0", "broker"),
        ("topology", TOPOLOGY % "{counts: 3}", "counts"),
        ("topology", TOPOLOGY.replace("broker", "taskmanager") % "1", "taskmanager"),
        ("topology", TOPOLOGY.replace("engine: kafka", "engine: kafak") % "1", "engine"),
        ("topology", TOPOLOGY.replace("name: t", "name: T") % "1", "name"),
        ("topology", "name: t\n", "services"),
        ("experiment", "name: x\ntopology: kafka-only\n", "workload"),
        ("experiment", EXPERIMENT.replace("numbered", "nmbered"), "nmbered"),
        ("experiment", EXPERIMENT.replace("records: 9", "records: many"), "records"),
        ("experiment", EXPERIMENT.replace("kafka-only", "{services: {}}"), "topology"),
        ("experiment", EXPERIMENT + "fault: []\n", "fault"),
        ("experiment", EXPERIMENT + "faults: 3\n", "faults"),
        ("experiment", STEP % f"kil: {{}}, {AT}", "kil"),
        ("experiment", STEP % f"kill: {{sgnal: TERM}}, {AT}", "sgnal"),
        ("experiment", STEP % f"kill: {{signal: 9}}, {AT}", "signal"),
        ("experiment", STEP % f"kill: {{}}, pause: {{}}, {AT}", "faults"),
        ("experiment", STEP % AT, "faults"),
        ("experiment", STEP % "kill: {}, at_s: 1", "target"),
        ("experiment", STEP % "kill: {}, target: a", "faults"),
        ("experiment", STEP % f"kill: {{}}, {AT}, when: {{event: drained}}", "faults"),
        ("experiment", STEP % "kill: {}, target: a, at_s: soon", "at_s"),
        ("experiment", STEP % "kill: {}, target: a, when: {event: no event}", "event"),
        ("experiment", STEP % "kill: {}, target: a, when: {after_s: 1, event: drained}", "when"),
        ("experiment", EXPERIMENT + "checks: [none]\n", "checks"),
        ("experiment", EXPERIMENT + "checks: [failover_scope]\n", "checks"),
        ("experiment", EXPERIMENT + "checks: [{recovery: {within: 60}}]\n", "within"),
        ("experiment", EXPERIMENT + "draw: {profile: 'single:none'}\n", "profile"),
        ("experiment", EXPERIMENT + "expect: {none: lost}\n", "expect"),
        ("experiment", EXPERIMENT + "job: {sqll: a}\n", "sqll"),
        ("suite", "name: s\nrows: []\n", "rows"),
        ("suite", "name: s\nrows: [{experiments: quickstart}]\n", "experiments"),
        ("suite", "name: s\nrows: [{experiment: quickstart, repeats: 0}]\n", "repeats"),
    ],
)
def test_a_wrong_document_is_invalid_at_its_wrong_part(kind: str, text: str, place: str) -> None:
    assert place in wrong_places(kind, text)
