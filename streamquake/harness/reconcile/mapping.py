"""A mapping: what `streamquake reconcile` is told of one side, in a small YAML file.

    key: [payload.user]           # or: payload.user, payload.region
    sequence: payload.turn
    value: [payload.amount]       # what must agree, as --compare
    order: _timestamp_ms          # the actual side
    ack: result                   # the expected side
    format: avro                  # json unless given
    schema: order.avsc            # beside this file; several by number: {3: a.avsc, 5: b.avsc}
    header: confluent             # what stands before each value of a topic

Every expression is as on the command line. Where both sides are said, the first expression of one
belongs to the first of the other, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from streamquake.harness.reconcile.format import Schema, formats
from streamquake.topologies.model import Model
from streamquake.topologies.parsing import parse
from streamquake.topologies.problems import BadInput, Problem, did_you_mean
from streamquake.topologies.yaml_document import Document, read_document

SideName = Literal["expected", "actual"]
ONE_SIDE: Mapping[SideName, str] = {"expected": "ack", "actual": "order"}
"""What only this side can have."""


def _listed(value: Any) -> Any:
    """A list of expressions as one text, with the commas that stand between them."""
    texts = isinstance(value, tuple) and value and all(isinstance(each, str) for each in value)
    return ", ".join(value) if texts else value


Expressions = Annotated[str, BeforeValidator(_listed)]


class SideMap(Model):
    """What a mapping file says."""

    key: Expressions | None = None
    sequence: str | None = None
    value: Expressions | None = None
    order: Expressions | None = None
    ack: str | None = None
    format: str | None = None
    schema_: Annotated[str | Mapping[str, str] | None, Field(alias="schema")] = None
    header: Literal["confluent"] | None = None


@dataclass(frozen=True, kw_only=True)
class Said:
    """A text, and where it was given: an option, or a place in a file."""

    text: str
    place: str


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """What a file says: expressions and the format by the names of `SideMap`, and the schema."""

    texts: Mapping[str, Said]
    schema: Schema | None = None


def mapped(path: Path, side: SideName) -> Mapped:
    """What the file says of that side. Raises BadInput with every problem there is."""
    document = read_document(path)
    found, problems = parse(SideMap, document)
    if found is not None:
        problems += _problems(found, side, document)
    texts = {} if found is None else _schemas(found, path.parent, document, problems)
    if problems or found is None:
        raise BadInput(problems)
    said = found.model_dump(exclude_none=True, exclude={"schema_", "header"})
    schema = Schema(texts=texts, place=_place(document, "schema"), header=found.header)
    return Mapped(
        texts={name: Said(text=text, place=_place(document, name)) for name, text in said.items()},
        schema=schema if texts else None,
    )


def _schemas(
    found: SideMap, folder: Path, document: Document, problems: list[Problem]
) -> dict[str, str]:
    """The schemas by their numbers; what cannot be read is added to the problems."""
    given = {"": found.schema_} if isinstance(found.schema_, str) else found.schema_ or {}
    texts = {}
    for number, name in given.items():
        place = ("schema", number) if number else ("schema",)
        if number and not number.isdecimal():
            message = f'expected the number of a schema, got "{number}"'
            problems.append(document.problem(place, message))
            continue
        try:
            texts[number] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            problems.append(document.problem(place, f"{folder / name} cannot be read: {why}"))
    return texts


def _problems(found: SideMap, side: SideName, document: Document) -> list[Problem]:
    problems = [
        document.problem((name,), f"only the {other} side has that, and this is the {side} side")
        for other, name in ONE_SIDE.items()
        if other != side and getattr(found, name) is not None
    ]
    if found.format is not None and found.format not in set(formats):
        known = did_you_mean(found.format, formats)
        problems.append(
            document.problem(("format",), f'no format is called "{found.format}"{known}')
        )
        return problems
    takes_schema = found.format is not None and formats[found.format].takes_schema
    if found.schema_ is not None and not takes_schema:
        known = " or ".join(name for name, kind in formats.items() if kind.takes_schema)
        message = f"records of format {known} have one; say so, as `format: {known}`"
        problems.append(document.problem(("schema",), message))
    numbered = isinstance(found.schema_, Mapping)
    if (found.header is not None and found.schema_ is None) or (numbered and not found.header):
        message = "`header` and the numbers of schemas mean something together only"
        problems.append(document.problem(("header" if found.header else "schema",), message))
    return problems


def _place(document: Document, name: str) -> str:
    return f"{document.file}:{document.line((name,))}: {name}"
