"""Avro: the binary form of a record, with or without the header of Confluent's wire format.

A value must be exactly what its schema holds, so a fraction that the type would round, text where
a number is expected, and a field that the schema does not have are rejected. A field that a record
leaves out is null: defaults of a schema are for readers. Of a union the first branch is taken that
holds the value exactly. Logical types other than decimals are the numbers and texts that they
consist of: a `timestamp-millis` is a whole number. Each record is decoded again and compared.

https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal, localcontext
from typing import Any

from fastavro import schemaless_reader, schemaless_writer

from streamquake.harness.workloads.data_sets.column_types import EXACT, fits
from streamquake.harness.workloads.data_sets.encodings.avro_schema import (
    branch_name,
    sending_schema,
)
from streamquake.harness.workloads.data_sets.encodings.exact import (
    NotExact,
    floating,
    is_number,
    within,
)

PLAIN = {"int": "INT", "long": "BIGINT", "boolean": "BOOLEAN", "string": "STRING"}
"""Type of Avro without parts -> the column with the same values."""
Named = Mapping[str, Any]
"""Name -> schema of the records and enums."""


def avro_encoding(text: str, schema_id: int | None) -> Callable[[Mapping[str, Any]], bytes]:
    """Encodes records by the schema in `text`. With a `schema_id` each value has the header: a
    zero, then the ID in four bytes. Raises ValueError for a wrong schema."""
    schema, named = sending_schema(text)
    header = b"" if schema_id is None else b"\0" + schema_id.to_bytes(4, "big")

    def encode(record: Mapping[str, Any]) -> bytes:
        try:
            exact = _exact(dict(record), schema, named, "")
            encoded = io.BytesIO()
            schemaless_writer(encoded, schema, exact)
            encoded.seek(0)
            decoded = schemaless_reader(encoded, schema, None)
            is_same = decoded == _without_branches(exact)
        except RecursionError as error:
            raise ValueError("the record is nested too deeply for Avro") from error
        if not is_same:
            raise ValueError(f"Avro changes the record to {str(decoded)[:60]}")
        return header + encoded.getvalue()

    return encode


def _exact(value: Any, schema: Any, named: Named, place: str) -> Any:
    """The value as fastavro takes it; that of a union is a pair of its branch and the value. Raises
    ValueError with its place where it is not exactly of the schema."""
    if isinstance(schema, list):
        return _of_union(value, schema, named, place)
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    match schema["type"]:
        case "record" if isinstance(value, dict):
            return _record(value, schema, named, place)
        case "array" if isinstance(value, list):
            items = schema["items"]
            return [_exact(each, items, named, f"{place}[{n}]") for n, each in enumerate(value)]
        case "map" if isinstance(value, dict):
            of = schema["values"]
            return {k: _exact(each, of, named, within(place, k)) for k, each in value.items()}
        case "bytes" | "fixed" if schema.get("logicalType") == "decimal":
            return _decimal(value, schema, place)
        case "float" | "double" as kind:
            return floating(value, kind, place, single=kind == "float")
        case "enum" if value in schema["symbols"]:
            return value
        case str() as kind if _is_plain(value, kind):
            return value
        case dict() | list() as inner:
            return _exact(value, inner, named, place)
    raise NotExact(value, str(schema["type"]), place)


def _of_union(value: Any, branches: list[Any], named: Named, place: str) -> Any:
    if value is None and "null" in branches:
        return None
    kinds = [branch for branch in branches if branch != "null"]
    if len(kinds) == 1:
        return branch_name(kinds[0]), _exact(value, kinds[0], named, place)
    for branch in kinds:
        with suppress(ValueError):
            return branch_name(branch), _exact(value, branch, named, place)
    raise NotExact(value, json.dumps(branches), place)


def _record(
    value: Mapping[str, Any], schema: Mapping[str, Any], named: Named, place: str
) -> dict[str, Any]:
    fields = {field["name"]: field["type"] for field in schema["fields"]}
    if unknown := next((name for name in value if name not in fields), None):
        raise ValueError(f"the schema has no field {within(place, unknown)}")
    return {
        name: _exact(value.get(name), kind, named, within(place, name))
        for name, kind in fields.items()
    }


def _decimal(value: Any, schema: Mapping[str, Any], place: str) -> Decimal:
    scale = schema.get("scale", 0)
    kind = f"DECIMAL({schema['precision']},{scale})"
    if not is_number(value) or not fits(kind, value):
        raise NotExact(value, kind, place)
    with localcontext(EXACT):
        # fastavro compares the scale, and writes the sign of a zero.
        return Decimal(value).quantize(Decimal(1).scaleb(-scale)) + 0


def _is_plain(value: Any, kind: str) -> bool:
    """Whether a value is one of a type without parts."""
    if value is None:
        return kind == "null"
    return kind in PLAIN and fits(PLAIN[kind], value)


def _without_branches(exact: Any) -> Any:
    """The values alone, as they are decoded."""
    if isinstance(exact, tuple):
        return _without_branches(exact[1])
    if isinstance(exact, dict):
        return {name: _without_branches(each) for name, each in exact.items()}
    if isinstance(exact, list):
        return [_without_branches(each) for each in exact]
    return exact
