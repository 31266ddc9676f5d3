"""The JSON Schema of each kind of document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from streamquake.harness.schema.experiment import experiment_model
from streamquake.harness.schema.generator import schema_of_model
from streamquake.harness.schema.suite import suite_model
from streamquake.harness.schema.topology import topology_model
from streamquake.harness.schema.variants import with_variants

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: Mapping[str, Callable[[], type[BaseModel]]] = {
    "topology": topology_model,
    "experiment": experiment_model,
    "suite": suite_model,
}
"""Kind of document -> the function that builds its model."""


def document_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind of document. It describes the form of each part; rules between the
    parts are checked when the document is loaded."""
    schema = with_variants(schema_of_model(MODELS[kind]()))
    return {"$schema": DIALECT, "title": f"Streamquake {kind}", **schema}
