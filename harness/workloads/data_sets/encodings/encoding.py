"""The encoding of a load, by the format that its document names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamquake.harness.reconcile.reading.record_format import DEFAULT_FORMAT, RecordFormat
from streamquake.harness.workloads.data_sets.encodings import avro_schema, protobuf
from streamquake.harness.workloads.data_sets.encodings.avro import avro_encoding
from streamquake.harness.workloads.data_sets.encodings.csv import csv_encoding

Encode = Callable[[Mapping[str, Any]], bytes]
"""The bytes of one record, whose fractions are Decimal. Raises ValueError for a record that the
format does not represent exactly."""
ENCODED = (DEFAULT_FORMAT, "csv", "avro", "protobuf")


def encoding(load: RecordFormat, columns: Mapping[str, str]) -> Encode | None:
    """The encoding of records with these columns; None for JSON, whose lines are sent unchanged.
    Raises ValueError for a format in which no records are sent, and for a wrong schema."""
    match load.format or DEFAULT_FORMAT:
        case "json":
            return None
        case "csv":
            return csv_encoding(columns)
        case "avro":
            return avro_encoding(*_only_schema(load))
        case "protobuf":
            return protobuf.protobuf_encoding(_descriptors(load), load.message)
        case other:
            raise ValueError(f"records are sent as {', '.join(ENCODED)}, not as {other}")


def incomparable_field(load: RecordFormat) -> str | None:
    """A field that a topic holds in another type than the records sent, such as a time instead of
    its milliseconds; None where there is none, or the schema is wrong."""
    try:
        match load.format:
            case "avro":
                return avro_schema.incomparable_field(_only_schema(load)[0])
            case "protobuf":
                return protobuf.incomparable_field(_descriptors(load), load.message)
            case _:
                return None
    except (ValueError, LookupError, TypeError):
        return None  # `encoding` says what is wrong


def _descriptors(load: RecordFormat) -> str:
    if load.header is not None:
        raise ValueError("records are sent as protobuf without a header; remove `header`")
    if not isinstance(load.schema_, str):
        raise ValueError("records are sent as protobuf by descriptors; give them: `schema: FILE`")
    return load.schema_


def _only_schema(load: RecordFormat) -> tuple[str, int | None]:
    """The schema of all records, and its ID where they have a header."""
    texts = {"": load.schema_} if isinstance(load.schema_, str) else dict(load.schema_ or {})
    if not texts:
        raise ValueError("records are sent as avro by a schema; give it as `schema: FILE`")
    if len(texts) > 1:
        raise ValueError("all records are sent by one schema; name one: `schema: {ID: FILE}`")
    ((schema_id, text),) = texts.items()
    if load.header is None:
        return text, None
    if not schema_id:
        raise ValueError("the header has the ID of the schema; give it: `schema: {ID: FILE}`")
    if int(schema_id) >= 1 << 31:
        raise ValueError(f"schema IDs end at {(1 << 31) - 1}, got {schema_id}")
    return text, int(schema_id)
