"""A mapping: the options of `streamquake reconcile` for one side, in a small YAML file.

    key: [payload.user]           # or: payload.user, payload.region
    sequence: payload.turn
    value: [payload.amount]       # what must be equal, as --compare
    order: _timestamp_ms          # the actual side
    retracts: op = 'd'            # the actual side
    upsert: true                  # the actual side
    ack: result                   # the expected side
    properties: {security.protocol: SSL}    # of a Kafka, see `cluster/engines/kafka/connection.py`
    format: avro                  # ... and more of the format, see `record_format.py`

Every expression is as on the command line. Where both sides have expressions, the first one of one
side is compared with the first one of the other, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from streamquake.cluster.engines.kafka.connection import file_problems, property_problems
from streamquake.harness.reconcile.reading.format import Schema
from streamquake.harness.reconcile.reading.record_format import RecordFormat, with_schemas
from streamquake.topologies.parsing import parse
from streamquake.topologies.problems import BadInput, Problem, with_further
from streamquake.topologies.service_files import with_full_paths
from streamquake.topologies.yaml_document import Document, read_document

SideName = Literal["expected", "actual"]
ONE_SIDE: Mapping[str, SideName] = {
    "ack": "expected",
    "order": "actual",
    "retracts": "actual",
    "upsert": "actual",
}
"""Option -> the only side that can have it."""
UPSERT = "true"
EXPRESSIONS = ("key", "sequence", "value", "order", "retracts", "ack")


def _joined_list(value: Any) -> Any:
    """A list of expressions joined into one text with commas."""
    texts = isinstance(value, tuple) and value and all(isinstance(text, str) for text in value)
    return ", ".join(value) if texts else value


Expressions = Annotated[str, BeforeValidator(_joined_list)]


class SideMapping(RecordFormat):
    """The fields of a mapping file."""

    key: Expressions | None = None
    sequence: str | None = None
    value: Expressions | None = None
    order: Expressions | None = None
    retracts: str | None = None
    upsert: bool | None = None
    ack: str | None = None
    properties: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class GivenText:
    """A text, and where it was given: an option, or a place in a file."""

    text: str
    place: str


@dataclass(frozen=True, kw_only=True)
class MappingDocument:
    """The content of a file: expressions and the format by the names of `SideMapping`, the schema,
    and the properties of clients."""

    texts: Mapping[str, GivenText]
    schema: Schema | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def read_mapping(path: Path, side: SideName) -> MappingDocument:
    """Read the mapping file of a side. Raises BadInput with every problem of the file."""
    document = read_document(path)
    mapping, problems = parse(SideMapping, document)
    if mapping is not None:
        problems += _wrong_side_problems(mapping, side, document)
        properties = with_full_paths(mapping.properties, path.parent)
        further = list(property_problems(properties)) or file_problems(properties)
        problems = with_further(
            problems, (document.problem(("properties", name), text) for name, text in further)
        )
        mapping, schema_problems = with_schemas(mapping, path.parent, document)
        problems += schema_problems
    if problems or mapping is None:
        raise BadInput(problems)
    texts = mapping.model_dump(exclude_none=True, include={"format", *EXPRESSIONS})
    texts |= {"upsert": UPSERT} if mapping.upsert else {}
    return MappingDocument(
        texts={
            name: GivenText(text=text, place=_place(document, name)) for name, text in texts.items()
        },
        schema=mapping.schema_given(_place(document, "schema")),
        properties=properties,
    )


def _wrong_side_problems(mapping: SideMapping, side: SideName, document: Document) -> list[Problem]:
    return [
        document.problem(
            (name,), f"only the {other} side can have this, and the file is for the {side} side"
        )
        for name, other in ONE_SIDE.items()
        if other != side and getattr(mapping, name) is not None
    ]


def _place(document: Document, name: str) -> str:
    return f"{document.file}:{document.line((name,))}: {name}"
