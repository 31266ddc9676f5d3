"""A mapping: what `streamquake reconcile` is told of one side, in a small YAML file.

    key: [payload.user]           # or: payload.user, payload.region
    sequence: payload.turn
    value: [payload.amount]       # what must agree, as --compare
    order: _timestamp_ms          # the actual side
    retracts: op = 'd'            # the actual side
    upsert: true                  # the actual side
    ack: result                   # the expected side
    format: avro                  # ... and what more there is to tell, see `written.py`

Every expression is as on the command line. Where both sides are said, the first expression of one
belongs to the first of the other, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from streamquake.harness.reconcile.reading.format import Schema
from streamquake.harness.reconcile.reading.record_format import RecordFormat, with_schemas
from streamquake.topologies.parsing import parse
from streamquake.topologies.problems import BadInput, Problem
from streamquake.topologies.yaml_document import Document, read_document

SideName = Literal["expected", "actual"]
ONE_SIDE: Mapping[str, SideName] = {
    "ack": "expected",
    "order": "actual",
    "retracts": "actual",
    "upsert": "actual",
}
"""What only this side can have."""
UPSERT = "true"
EXPRESSIONS = ("key", "sequence", "value", "order", "retracts", "ack")


def _joined_list(value: Any) -> Any:
    """A list of expressions as one text, with the commas that stand between them."""
    texts = isinstance(value, tuple) and value and all(isinstance(each, str) for each in value)
    return ", ".join(value) if texts else value


Expressions = Annotated[str, BeforeValidator(_joined_list)]


class SideMapping(RecordFormat):
    """What a mapping file says."""

    key: Expressions | None = None
    sequence: str | None = None
    value: Expressions | None = None
    order: Expressions | None = None
    retracts: str | None = None
    upsert: bool | None = None
    ack: str | None = None


@dataclass(frozen=True, kw_only=True)
class GivenText:
    """A text, and where it was given: an option, or a place in a file."""

    text: str
    place: str


@dataclass(frozen=True, kw_only=True)
class MappingDocument:
    """What a file says: expressions and the format by the names of `SideMap`, and the schema."""

    texts: Mapping[str, GivenText]
    schema: Schema | None = None


def read_mapping(path: Path, side: SideName) -> MappingDocument:
    """What the file says of that side. Raises BadInput with every problem there is."""
    document = read_document(path)
    found, problems = parse(SideMapping, document)
    if found is not None:
        problems += _wrong_side_problems(found, side, document)
        found, wrong = with_schemas(found, path.parent, document)
        problems += wrong
    if problems or found is None:
        raise BadInput(problems)
    message = found.model_dump(exclude_none=True, include={"format", *EXPRESSIONS})
    message |= {"upsert": UPSERT} if found.upsert else {}
    return MappingDocument(
        texts={
            name: GivenText(text=text, place=_place(document, name))
            for name, text in message.items()
        },
        schema=found.schema_given(_place(document, "schema")),
    )


def _wrong_side_problems(found: SideMapping, side: SideName, document: Document) -> list[Problem]:
    return [
        document.problem((name,), f"only the {other} side has that, and this is the {side} side")
        for name, other in ONE_SIDE.items()
        if other != side and getattr(found, name) is not None
    ]


def _place(document: Document, name: str) -> str:
    return f"{document.file}:{document.line((name,))}: {name}"
