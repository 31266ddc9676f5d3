"""A mapping: what `streamquake reconcile` is told of one side, in a small YAML file.

    key: [payload.user]           # or: payload.user, payload.region
    sequence: payload.turn
    value: [payload.amount]       # what must agree, as --compare
    order: _timestamp_ms          # the actual side
    ack: result                   # the expected side
    format: json

Every expression is as on the command line. Where both sides are said, the first expression of one
belongs to the first of the other, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from streamquake.harness.reconcile.format import formats
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


@dataclass(frozen=True, kw_only=True)
class Said:
    """A text, and where it was given: an option, or a place in a file."""

    text: str
    place: str


def mapped(path: Path, side: SideName) -> dict[str, Said]:
    """What the file says of that side, by the names of `SideMap`. Raises BadInput with every
    problem there is."""
    document = read_document(path)
    found, problems = parse(SideMap, document)
    if found is not None:
        problems += _problems(found, side, document)
    if problems or found is None:
        raise BadInput(problems)
    return {
        name: Said(text=text, place=_place(document, name))
        for name, text in found.model_dump(exclude_none=True).items()
    }


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


def _place(document: Document, name: str) -> str:
    return f"{document.file}:{document.line((name,))}: {name}"
