"""The JSON Schemas describe everything that a document may name, and reject everything else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel

from streamquake.cluster.engines.engine import engine, engines
from streamquake.faults.fault import faults
from streamquake.harness.campaign.suite.model import RowSource, SuiteSource
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.document import ExperimentSource, StepSource
from streamquake.harness.experiment.loader import EXPERIMENTS
from streamquake.harness.experiment.workload import workloads
from streamquake.harness.reference.markdown import attribute_docs
from streamquake.harness.schema.generator import REFERENCE
from streamquake.harness.schema.schemas import DIALECT, MODELS, document_schema
from streamquake.reports.record.event import Action
from streamquake.topologies.docstrings import summary
from streamquake.topologies.model import NodeGroup, Topology
from streamquake.topologies.named_files import SHIPPED, shipped_names

schema_of = cache(document_schema)
EVERY_KIND = pytest.mark.parametrize("kind", MODELS)


def definitions(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = schema_of(kind)["$defs"]
    return found


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a schema."""
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            yield from parts(part)


def described_by(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The definition that a schema refers to, alone or beside null."""
    references = [part["$ref"] for part in parts(schema) if "$ref" in part]
    assert len(references) == 1
    found: dict[str, Any] = definitions(kind)[references[0].removeprefix(REFERENCE)]
    return found


def names_in(kind: str, name: str) -> set[str]:
    """The names that a definition offers, each with its description."""
    return {part["const"] for part in parts(definitions(kind)[name]) if "const" in part}


def keys_of(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@EVERY_KIND
def test_the_dialect_is_named_and_every_reference_leads_to_a_definition(kind: str) -> None:
    schema = schema_of(kind)
    references = {part["$ref"] for part in parts(schema) if "$ref" in part}

    assert schema["$schema"] == DIALECT
    assert schema["$ref"] in references
    assert {reference.removeprefix(REFERENCE) for reference in references} == {*schema["$defs"]}


@EVERY_KIND
def test_every_mapping_rejects_unknown_keys(kind: str) -> None:
    mappings = [part for part in parts(schema_of(kind)) if part.get("type") == "object"]

    assert len(mappings) > 3
    assert [part for part in mappings if part.get("additionalProperties") in (None, True)] == []


@EVERY_KIND
def test_every_pattern_of_keys_is_a_rule_for_keys(kind: str) -> None:
    assert [part for part in parts(schema_of(kind)) if "patternProperties" in part] == []


@EVERY_KIND
def test_a_schema_is_the_same_each_time(kind: str) -> None:
    assert json.dumps(document_schema(kind)) == json.dumps(schema_of(kind))


@EVERY_KIND
def test_no_description_has_a_line_break_within_a_paragraph(kind: str) -> None:
    texts = [part["description"] for part in parts(schema_of(kind)) if "description" in part]
    plain = [text for text in texts if isinstance(text, str)]

    assert len(plain) > 10
    assert [text for text in plain if re.search(r"[^\n]\n[^\n]", text)] == []


@pytest.mark.parametrize(
    ("kind", "name", "model"),
    [
        ("topology", "WholeTopology", Topology),
        ("topology", "NodeGroup", NodeGroup),
        ("experiment", "WholeExperiment", ExperimentSource),
        ("experiment", "Step", StepSource),
        ("suite", "Suite", SuiteSource),
        ("suite", "Row", RowSource),
    ],
)
def test_every_key_has_the_docstring_of_its_field(
    kind: str, name: str, model: type[BaseModel]
) -> None:
    properties = definitions(kind)[name]["properties"]

    assert keys_of(model) <= properties.keys()
    assert {key for key in attribute_docs(model) if "description" not in properties[key]} == set()


def test_an_entry_of_faults_may_name_every_fault_with_its_parameters() -> None:
    step = definitions("experiment")["Step"]

    for name, fault in faults.items():
        described = described_by("experiment", step["properties"][name])
        assert described["properties"].keys() == keys_of(fault)
        assert {**described, **step["properties"][name]}["description"].startswith(summary(fault))


def test_an_entry_of_faults_needs_a_target_one_fault_and_one_trigger() -> None:
    step = definitions("experiment")["Step"]
    one_fault, one_trigger = [
        {name for choice in rule["oneOf"] for name in choice["required"]} for rule in step["allOf"]
    ]

    assert step["required"] == ["target"]
    assert one_fault >= {*faults, "stop_the_world"}
    assert one_fault.isdisjoint(keys_of(StepSource))
    assert one_trigger == {"when", "at_s"}


def test_a_former_name_of_a_fault_is_deprecated() -> None:
    former = definitions("experiment")["Step"]["properties"]["stop_the_world"]

    assert (former["deprecated"], former["description"]) == (True, "Now called `sigstop`.")


def test_every_check_may_be_named_with_its_parameters_and_alone_if_it_needs_none() -> None:
    named = definitions("experiment")["NamedCheck"]
    entries = definitions("experiment")["WholeExperiment"]["properties"]["checks"]["items"]
    alone = {part["const"] for part in parts(entries) if "const" in part}

    assert named["properties"].keys() == {*checks}
    for name, check in checks.items():
        described = described_by("experiment", named["properties"][name])
        assert described["properties"].keys() == keys_of(check)
        assert (name in alone) == (not described.get("required"))


def test_a_load_is_exactly_one_workload() -> None:
    workload = definitions("experiment")["Workload"]

    assert workload["properties"].keys() == {*workloads}
    assert workload["allOf"] == [{"oneOf": [{"required": [name]} for name in workloads]}]


def test_every_engine_has_its_own_roles() -> None:
    services = [
        definitions("topology")[part["$ref"].removeprefix(REFERENCE)]
        for part in definitions("topology")["WholeTopology"]["properties"]["services"][
            "additionalProperties"
        ]["anyOf"]
    ]

    assert {service["properties"]["engine"]["const"] for service in services} == {*engines}
    for service in services:
        roles = engine(service["properties"]["engine"]["const"]).roles()
        nodes = described_by("topology", service["properties"]["nodes"])["properties"]
        assert {role: group["description"] for role, group in nodes.items()} == dict(roles)


def test_shipped_documents_are_offered_by_name_and_any_file_is_allowed() -> None:
    assert names_in("topology", "TopologyName") == {*shipped_names(SHIPPED, ".yaml")}
    for kind in ("experiment", "suite"):
        assert names_in(kind, "ExperimentName") == {*shipped_names(EXPERIMENTS, ".yaml")}
    assert {"type": "string"} in definitions("topology")["TopologyName"]["anyOf"]


def test_a_trigger_may_wait_for_every_event() -> None:
    trigger = definitions("experiment")["Trigger"]["properties"]

    assert trigger["event"]["enum"] == [str(action) for action in Action]


def test_a_default_is_shown_only_where_it_is_a_single_value() -> None:
    group = definitions("topology")["NodeGroup"]["properties"]

    assert (group["count"]["default"], group["supervised"]["default"]) == (1, True)
    assert [key for key in ("env", "slots", "rules") if "default" in group[key]] == []
