"""Rules for the members of every registry: each function returns the violations of one rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from streamquake.topologies.limits import LONGEST_MS, LONGEST_S

M = TypeVar("M", bound=BaseModel)
UNITS = {LONGEST_S: "_s", float(LONGEST_MS): "_ms"}
"""The upper bound of a time -> the unit at the end of the parameter's name."""


def without_docstring(kind: type) -> Iterator[str]:
    """Every member has a docstring of its own, whose first line `list` shows."""
    if not (kind.__dict__.get("__doc__") or "").partition("\n")[0].strip():
        yield f"{kind.__name__} has no docstring of its own, so `list` shows nothing"


def wrong_units(model: type[BaseModel]) -> Iterator[str]:
    """A parameter that is bounded as a time has its unit in its name."""
    for name, field in model.model_fields.items():
        for bound in _bounds(field):
            if not name.endswith(unit := UNITS.get(bound, "")):
                yield f"{name} is a time and does not end in {unit}"


def accepts_unknown_parameter(member: BaseModel) -> Iterator[str]:
    """An unknown parameter, such as a misspelt one, is rejected."""
    try:
        type(member).model_validate({**member.model_dump(by_alias=True), "no_such_parameter": 1})
    except ValidationError:
        return
    yield "an unknown parameter is accepted"


def lost_in_json(member: BaseModel) -> Iterator[str]:
    """The parameters are unchanged after a round trip through JSON, as in a recorded plan."""
    document = json.loads(member.model_dump_json(by_alias=True, exclude_none=True))
    reread = type(member).model_validate_json(json.dumps(document))
    if reread != member:
        yield f"the parameters after JSON are {reread!r}"


def minimal_member(model: type[M]) -> M:
    """A member with only its required parameters, each with its example, its lower bound, its first
    choice, or one text in a list."""
    needed = {name: f for name, f in model.model_fields.items() if f.is_required()}
    return model(**{field.alias or name: _smallest_value(field) for name, field in needed.items()})


def _smallest_value(field: FieldInfo) -> Any:
    if field.examples:
        return field.examples[0]
    if get_origin(field.annotation) is tuple:
        return ("a",)
    if choices := get_args(field.annotation):
        return choices[0]
    lower = [getattr(item, "ge", getattr(item, "gt", 0)) or 0 for item in field.metadata]
    return field.annotation(max(lower, default=0) + 1) if field.annotation else None


def _bounds(field: FieldInfo) -> Iterator[float]:
    """The upper bounds of a parameter, including those of the types of an optional one."""
    nested = (n for choice in get_args(field.annotation) for n in _metadata(choice))
    for item in (*field.metadata, *nested):
        if (bound := getattr(item, "le", None)) is not None:
            yield float(bound)


def _metadata(choice: Any) -> Iterator[Any]:
    for found in getattr(choice, "__metadata__", ()):
        yield from found.metadata if isinstance(found, FieldInfo) else (found,)
