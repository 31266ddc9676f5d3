"""An Avro schema by which records are sent: parsed, and rejected where a consumer would not accept
it, or where a record in JSON does not say which part of it is meant."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fastavro import parse_schema
from fastavro.schema import SchemaParseException, UnknownType

from streamquake.harness.workloads.data_sets.column_types import MAX_DIGITS

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OBJECTS = ("record", "map")
"""Types whose values are objects in JSON."""
NAMED = ("record", "enum", "fixed")


def sending_schema(text: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The schema of a record, without logical types but decimals, and its named types by their full
    names. Raises ValueError."""
    named: dict[str, Any] = {}
    try:
        schema = parse_schema(_without_logical_types(json.loads(text)), named_schemas=named)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ValueError("expected the Avro schema of a record, got another one")
        for part in parts_of(schema):
            if problem := _problem(part, named):
                raise ValueError(problem)
    except RecursionError as error:
        raise ValueError("expected an Avro schema: it is nested too deeply") from error
    except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"expected an Avro schema: {error}") from error
    return schema, named


def incomparable_field(text: str) -> str | None:
    """A field of a record whose values a topic has in another type than the records sent, such as
    a time instead of its milliseconds; None where there is none. Raises ValueError."""
    return next((f["name"] for f in json.loads(text)["fields"] if not _is_simple(f["type"])), None)


def branch_name(branch: Any) -> str:
    """What fastavro calls a branch of a union."""
    if isinstance(branch, str):
        return branch
    return str(branch["name"] if branch["type"] in NAMED else branch["type"])


def parts_of(schema: Any) -> Iterator[Any]:
    """The schemas within a schema, and itself."""
    yield schema
    if isinstance(schema, list):
        within = schema
    elif isinstance(schema, Mapping):
        fields = [field["type"] for field in schema.get("fields", ())]
        within = [*fields, *(schema[key] for key in ("items", "values") if key in schema)]
    else:
        within = []
    for each in within:
        yield from parts_of(each)


def _without_logical_types(schema: Any) -> Any:
    """The schema whose values are numbers and texts; its bytes are the same."""
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _without_logical_types(value) for name, value in schema.items()}
    if not _is_decimal(kept):
        kept.pop("logicalType", None)
    return kept


def _is_decimal(schema: Mapping[str, Any]) -> bool:
    """Whether it is a decimal; without a precision it is bytes, as the specification has it."""
    return schema.get("logicalType") == "decimal" and isinstance(schema.get("precision"), int)


def _problem(part: Any, named: Mapping[str, Any]) -> str | None:
    if isinstance(part, list):
        return _problem_of_union(part, named)
    if not isinstance(part, Mapping):
        return None
    names = [field["name"] for field in part.get("fields", ())]
    given = part["name"].split(".") if part["type"] in NAMED else []
    if wrong := next((name for name in (*given, *names) if not NAME.fullmatch(name)), None):
        return f'"{wrong}" is no name: letters, digits and underscores are'
    if twice := next((name for name, count in Counter(names).items() if count > 1), None):
        return f'the field "{twice}" is there twice'
    aliases = [alias for field in part.get("fields", ()) for alias in field.get("aliases", ())]
    if other := next((alias for alias in aliases if alias in names), None):
        return f'the alias "{other}" is the name of another field'
    if part.get("logicalType") == "decimal" and part["precision"] > MAX_DIGITS:
        return f"decimals have up to {MAX_DIGITS} digits, got {part['precision']}"
    return None


def _problem_of_union(branches: list[Any], named: Mapping[str, Any]) -> str | None:
    if any(isinstance(branch, list) for branch in branches):
        return "a union within a union"
    names = Counter(map(branch_name, branches))
    if twice := next((name for name, count in names.items() if count > 1), None):
        return f"a union has {twice} twice"
    kinds = [
        named.get(branch, {"type": branch}) if isinstance(branch, str) else branch
        for branch in branches
    ]
    objects = [branch_name(kind) for kind in kinds if kind["type"] in OBJECTS]
    if len(objects) > 1:
        return f"a union of {' and '.join(objects)}: an object in JSON does not say which it is"
    return None


def _is_simple(kind: Any) -> bool:
    branches = [each for each in kind if each != "null"] if isinstance(kind, list) else [kind]
    if len(branches) != 1:
        return False
    (branch,) = branches
    if isinstance(branch, Mapping):
        is_plain = "logicalType" not in branch and branch["type"] in (*PLAIN, "enum")
        return is_plain or _is_decimal(branch)
    return branch in PLAIN


PLAIN = ("boolean", "int", "long", "float", "double", "string")
