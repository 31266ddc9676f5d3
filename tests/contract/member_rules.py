"""What members of every registry have in common: each rule answers with what breaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from streamquake.topologies.limits import LONGEST_MS, LONGEST_S

M = TypeVar("M", bound=BaseModel)
UNITS = {LONGEST_S: "_s", float(LONGEST_MS): "_ms"}
"""The bound of a time -> how a parameter that is bounded so ends."""


def undescribed(kind: type) -> Iterator[str]:
    """`list` shows the first line of a member's own docstring."""
    if not (kind.__dict__.get("__doc__") or "").partition("\n")[0].strip():
        yield f"{kind.__name__} has no docstring of its own, so `list` shows nothing"


def wrong_units(model: type[BaseModel]) -> Iterator[str]:
    """A parameter that is bounded as a time has its unit in its name."""
    for name, field in model.model_fields.items():
        for bound in _bounds(field):
            if not name.endswith(unit := UNITS.get(bound, "")):
                yield f"{name} is a time and does not end in {unit}"


def takes_unknown(made: BaseModel) -> Iterator[str]:
    """A parameter that is misspelt must not be passed over."""
    try:
        type(made).model_validate({**made.model_dump(by_alias=True), "no_such_parameter": 1})
    except ValidationError:
        return
    yield "an unknown parameter is taken"


def lost_in_json(made: BaseModel) -> Iterator[str]:
    """A recorded plan holds the parameters as JSON."""
    document = json.loads(made.model_dump_json(by_alias=True, exclude_none=True))
    again = type(made).model_validate_json(json.dumps(document))
    if again != made:
        yield f"came back from JSON as {again!r}"


def least(model: type[M]) -> M:
    """A member with no more than it needs, each parameter by its lower bound or first choice."""
    needed = {name: f for name, f in model.model_fields.items() if f.is_required()}
    return model(**{field.alias or name: _least_of(field) for name, field in needed.items()})


def _least_of(field: FieldInfo) -> Any:
    if choices := get_args(field.annotation):
        return choices[0]
    lower = [getattr(item, "ge", getattr(item, "gt", 0)) or 0 for item in field.metadata]
    return field.annotation(max(lower, default=0) + 1) if field.annotation else None


def _bounds(field: FieldInfo) -> Iterator[float]:
    """Upper bounds, also those of the choices of an optional parameter."""
    nested = (n for choice in get_args(field.annotation) for n in _metadata(choice))
    for item in (*field.metadata, *nested):
        if (bound := getattr(item, "le", None)) is not None:
            yield float(bound)


def _metadata(choice: Any) -> Iterator[Any]:
    for found in getattr(choice, "__metadata__", ()):
        yield from found.metadata if isinstance(found, FieldInfo) else (found,)
