"""A document with `base` may leave out what its base has, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.schema.schemas import document_schema
from streamquake.harness.schema.variants import with_variants


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


@pytest.fixture
def schema() -> dict[str, Any]:
    """A document with a base, a part that needs a key, one that does not, and lists of both."""
    needs, open_part = closed({"a": {"type": "string"}}, required=["a"]), closed({})
    rules = [{"oneOf": [{"required": ["x"]}]}]
    document = closed(
        {
            "base": {"type": "string"},
            "part": {"anyOf": [reference("Needs"), {"type": "null"}]},
            "parts": {"type": "object", "additionalProperties": reference("Needs")},
            "open": reference("Open"),
            "list": {"type": "array", "items": reference("Needs")},
        },
        required=["part"],
        allOf=rules,
    )
    return {
        **reference("Document"),
        "$defs": {"Document": document, "Needs": needs, "Open": open_part},
    }


def test_a_document_is_complete_unless_it_has_a_base(schema: dict[str, Any]) -> None:
    found = with_variants(schema)

    assert found["$ref"] == "#/$defs/Document"
    assert found["$defs"]["Document"] == {
        "if": {"required": ["base"]},
        "then": reference("DocumentVariant"),
        "else": reference("WholeDocument"),
    }
    assert found["$defs"]["WholeDocument"] == schema["$defs"]["Document"]


def test_a_variant_needs_no_key_in_any_mapping(schema: dict[str, Any]) -> None:
    found = with_variants(schema)["$defs"]
    variant = found["DocumentVariant"]

    assert variant.keys() == {"type", "properties", "additionalProperties"}
    assert variant["additionalProperties"] is False
    assert variant["properties"]["part"]["anyOf"] == [reference("NeedsVariant"), {"type": "null"}]
    assert variant["properties"]["parts"]["additionalProperties"] == reference("NeedsVariant")
    assert found["NeedsVariant"] == closed({"a": {"type": "string"}})


def test_the_entries_of_a_list_are_complete_and_an_equal_part_is_not_copied(
    schema: dict[str, Any],
) -> None:
    found = with_variants(schema)["$defs"]

    assert found["DocumentVariant"]["properties"]["list"]["items"] == reference("Needs")
    assert found["DocumentVariant"]["properties"]["open"] == reference("Open")
    assert "OpenVariant" not in found


def test_a_variant_of_an_experiment_may_have_parts_of_a_topology() -> None:
    definitions = document_schema("experiment")["$defs"]
    variant = definitions["ExperimentVariant"]["properties"]

    assert "required" not in definitions["ExperimentVariant"]
    assert reference("TopologyVariant") in variant["topology"]["anyOf"]
    assert variant["workload"]["$ref"] == "#/$defs/WorkloadVariant"
    assert variant["faults"]["items"] == reference("Step")
    assert definitions["WholeExperiment"]["required"] == ["name", "topology", "workload"]
