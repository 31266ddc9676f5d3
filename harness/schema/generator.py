"""The JSON Schema of pydantic models, with the docstrings of their fields as descriptions."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from streamquake.harness.reference.markdown import attribute_docs
from streamquake.topologies.docstrings import one_line_each

REFERENCE = "#/$defs/"


def schema_of_model(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model: a reference to its definition, and all definitions."""
    names, schema = models_json_schema(
        [(model, "validation")],
        ref_template=f"{REFERENCE}{{model}}",
        schema_generator=_DocumentSchema,
    )
    return {**names[model, "validation"], "$defs": schema["$defs"]}


class _DocumentSchema(GenerateJsonSchema):
    """Pydantic's generator for schemas that an editor shows."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles: they only repeat the keys."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of a model; its fields are described by their docstrings."""
        found = super().model_schema(schema)
        found.pop("title", None)
        if "description" in found:
            found["description"] = one_line_each(found["description"])
        model = schema["cls"]
        docs = attribute_docs(model)
        for name, field in model.model_fields.items():
            if name in docs:
                described = found["properties"][field.alias or name]
                described.setdefault("description", one_line_each(docs[name]))
        return found

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Only single values are shown as defaults: an editor would insert whole mappings."""
        found = super().default_schema(schema)
        if found.get("default") in (None, "") or isinstance(found["default"], dict | list):
            found.pop("default", None)
        return found

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """A mapping; keys that do not have the form of a name are rejected."""
        found = super().dict_schema(schema)
        for pattern, values in found.pop("patternProperties", {}).items():
            found["additionalProperties"] = values
            found["propertyNames"] = {**found.get("propertyNames", {}), "pattern": pattern}
        return found
