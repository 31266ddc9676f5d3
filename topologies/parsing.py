"""From a document to a model, with every problem reported in the terms of YAML.

The model is a pydantic one; each error of pydantic becomes a place, the expected value, and the
value that was received.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from streamquake.topologies.problems import Problem, did_you_mean
from streamquake.topologies.secret_names import contains_secret, names_secret
from streamquake.topologies.yaml_document import Document, Place

M = TypeVar("M", bound=BaseModel)
SHOWN = 60
"""Longer values are shortened in messages."""
NOT_SHOWN = "a value that is not shown"
"""In place of a value that may be a secret."""
UNITS = (
    ("_per_s", " a second"),
    ("_mb", " of MiB"),
    ("_ms", " of milliseconds"),
    ("_us", " of microseconds"),
    ("_s", " of seconds"),
    ("_bytes", " of bytes"),
)
BOUNDS = {
    "greater_than_equal": ("ge", "of at least"),
    "greater_than": ("gt", "above"),
    "less_than_equal": ("le", "of at most"),
    "less_than": ("lt", "below"),
}
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "string": "text",
    "bool": "true or false",
    "dict": "keys with values",
    "mapping": "keys with values",
    "model": "keys with values",
    "tuple": "a list",
    "list": "a list",
}


def parse(model: type[M], document: Document, at: Place = ()) -> tuple[M | None, list[Problem]]:
    """The model of the data at a place of the document, and every problem with it.

    If there are problems, the model is without its invalid parts, or None; it only serves to find
    further problems.
    """
    return validate_data(model, value_at(document.data, at), document, at)


def validate_data(
    model: type[M], data: Any, document: Document, at: Place
) -> tuple[M | None, list[Problem]]:
    """As `parse`, for data derived from the value at the place."""
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        problems = list(_problems(error.errors(), model, data, document, at))
        return _without_invalid_parts(model, data, error), problems


def _without_invalid_parts(
    model: type[M], data: Any, error: ValidationError, rounds: int = 3
) -> M | None:
    """The model without its invalid parts; None when `rounds` more attempts fail."""
    for detail in error.errors():
        place = _real_place(detail, data)
        data = _without(data, place[:-1] if detail["type"] == "missing" else place)
    try:
        return model.model_validate(data)
    except ValidationError as remaining:
        return _without_invalid_parts(model, data, remaining, rounds - 1) if rounds else None


def _without(data: Any, place: Place) -> Any:
    """The data without the value at a place; a list keeps an empty entry instead."""
    if not place or value_at(data, place[:-1]) is None:
        return data
    head, rest = place[0], place[1:]
    if isinstance(data, Mapping):
        if rest:
            return {**data, head: _without(data[str(head)], rest)}
        return {key: value for key, value in data.items() if key != head}
    if isinstance(data, tuple) and isinstance(head, int):
        return (*data[:head], _without(data[head], rest) if rest else {}, *data[head + 1 :])
    return data


def value_at(data: Any, place: Place) -> Any:
    """The value at a place; None where there is none."""
    for part in place:
        data = _below(data, part)
    return data


def _below(data: Any, part: str | int) -> Any:
    if isinstance(data, Mapping):
        return data.get(part)
    if isinstance(data, tuple) and isinstance(part, int) and part < len(data):
        return data[part]
    return None


def _problems(
    errors: Iterable[ErrorDetails], model: type[BaseModel], data: Any, document: Document, at: Place
) -> Iterable[Problem]:
    by_place: dict[Place, list[ErrorDetails]] = {}
    for error in errors:
        by_place.setdefault(_real_place(error, data), []).append(error)
    for place, place_errors in by_place.items():
        names_parent = place_errors[0]["type"] == "missing"
        message = _message(place_errors, place, model, data)
        yield document.problem((*at, *(place[:-1] if names_parent else place)), message)


def _real_place(error: ErrorDetails, data: Any) -> Place:
    """Pydantic's location without the names of union members and keys that it inserts."""
    place: Place = ()
    for part in error["loc"]:
        exists = (isinstance(data, Mapping) and part in data) or (
            isinstance(data, tuple) and isinstance(part, int) and part < len(data)
        )
        if exists:
            place, data = (*place, part), _below(data, part)
        elif error["type"] == "missing" and part == error["loc"][-1]:
            place = (*place, part)
    return place


def _message(errors: list[ErrorDetails], place: Place, model: type[BaseModel], data: Any) -> str:
    error = errors[0]
    kind, context = error["type"], error.get("ctx", {})
    of_key = error["loc"][-1:] == ("[key]",)
    value = place[-1] if of_key else value_at(data, place)
    received = _received(place, value)
    name = str(place[-1]) if place else ""
    if kind == "missing":
        return f"expected the key `{name}`, which is missing"
    if kind == "extra_forbidden":
        return f'unknown key "{name}"{did_you_mean(name, fields_at(model, place[:-1]))}'
    if kind == "value_error":
        return str(context.get("error", error["msg"]))
    if kind in BOUNDS:
        key, words = BOUNDS[kind]
        return f"expected a number{_unit(name)} {words} {context[key]:g}, got {received}"
    if kind in ("literal_error", "enum"):
        return f"expected {context['expected']}, got {received}"
    if kind == "string_pattern_mismatch":
        return f"expected {_pattern_text(str(context['pattern']))}, got {received}"
    if kind == "too_short":
        return f"expected at least {context['min_length']:,} of them, got {received}"
    if kind == "string_too_short":
        return f"expected at least {context['min_length']:,} characters, got {received}"
    if kind == "string_too_long":
        return f"expected at most {context['max_length']:,} characters, got {received}"
    wanted = dict.fromkeys(_wanted(error, name) for error in errors)
    if KINDS["float"] in wanted:
        wanted.pop(KINDS["int"], None)
    return f"expected {' or '.join(wanted)}, got {received}{_hint(errors, value, received)}"


def _pattern_text(pattern: str) -> str:
    """A description of the characters that a pattern allows."""
    if ending := re.fullmatch(r"\\(\.\w+)\$", pattern):
        return f"a text that ends with {ending[1]}"
    if pattern.startswith("^[a-z_]["):
        return f"lower-case letters, digits and _, and no digit first ({pattern})"
    letters = "letters" if "A-Z" in pattern else "lower-case letters"
    is_name = pattern.startswith(("^[a-z0-9]", "^[A-Za-z0-9]"))
    return f"{letters}, digits and dashes ({pattern})" if is_name else f"a text like {pattern}"


def _wanted(error: ErrorDetails, name: str) -> str:
    kind = error["type"].partition("_")[0]
    if kind not in KINDS:
        return error["msg"]
    return KINDS[kind] + (_unit(name) if kind in ("int", "float", "finite") else "")


def _unit(name: str) -> str:
    return next((unit for ending, unit in UNITS if name.endswith(ending)), "")


def _received(place: Place, value: Any) -> str:
    """A value as it is shown, unless it may be a secret."""
    text = value_text(value)
    is_secret = any(names_secret(str(part)) for part in place) or contains_secret(text)
    return NOT_SHOWN if is_secret else text


def _hint(errors: list[ErrorDetails], value: Any, received: str) -> str:
    wants_text = any(error["type"] == "string_type" for error in errors)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    quoted = "" if received == NOT_SHOWN else f': "{received}"'
    return f"; write it in quotes{quoted}" if wants_text and is_number else ""


def value_text(value: Any) -> str:
    """A value as it is shown in messages."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def fields_at(model: type[BaseModel], place: Place) -> tuple[str, ...]:
    """The keys that a model accepts at a place below it; empty where any key is accepted."""
    owner = _as_model(kind_at(model, place))
    if owner is None:
        return ()
    return tuple(field.alias or name for name, field in owner.model_fields.items())


def kind_at(model: type[BaseModel], place: Place) -> Any:
    """The type that a model expects at a place below it; None where it expects nothing."""
    kind: Any = model
    for part in place:
        kind = _member(kind, part)
    return kind


def _member(kind: Any, part: str | int) -> Any:
    owner = _as_model(kind)
    if owner is not None:
        fields = ((f.alias or name, f.annotation) for name, f in owner.model_fields.items())
        return dict(fields).get(str(part))
    for choice in choices(kind):
        arguments = get_args(choice)
        if arguments:
            return arguments[0] if isinstance(part, int) else arguments[-1]
    return None


def _as_model(kind: Any) -> type[BaseModel] | None:
    for choice in choices(kind):
        if isinstance(choice, type) and issubclass(choice, BaseModel):
            return choice
    return None


def choices(kind: Any) -> tuple[Any, ...]:
    """The members of a union, each without its annotations."""
    if hasattr(kind, "__metadata__"):
        return choices(kind.__origin__)
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(choice for member in get_args(kind) for choice in choices(member))
    return (kind,)
