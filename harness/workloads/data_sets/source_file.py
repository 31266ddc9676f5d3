"""The files that a data set is read from: JSON lines, CSV, Parquet or Avro.

Each record becomes one line of JSON with exact values: decimals and whole numbers with all digits,
doubles as the shortest numeral, dates and times as SQL writes them, instants in UTC with a Z.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from streamquake.harness.workloads.data_sets.json_line import (
    MAX_LINE_BYTES,
    json_text,
    value_of,
)

LINE = pa.schema([("line", pa.binary())])
"""The schema of lines that `DataSet.store` wrote."""
MAX_BYTES = 1 << 30
"""A data set is held in memory while it is sent."""
BATCH_ROWS = 1000
WHOLE = re.compile(r"[+-]?[0-9]+")
NUMERAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
TRUTH = {"true": True, "false": False}


def lines_of(file: Path, columns: Mapping[str, str]) -> list[bytes]:
    """The lines of a file, by its suffix. `columns` has the types of the fields of CSV, which are
    text otherwise. Raises OSError, and ValueError for a file that is not of its format, or has a
    value that JSON does not hold."""
    match file.suffix:
        case ".parquet":
            return _lines_of_parquet(file)
        case ".avro":
            return _as_lines("record", _avro(file))
        case ".csv":
            return _as_lines("record", _csv(file, columns))
        case _:
            return _plain_lines(file.read_bytes())


SUFFIXES = (".jsonl", ".json", ".ndjson", ".csv", ".parquet", ".avro")


def _plain_lines(content: bytes) -> list[bytes]:
    lines = [line.removesuffix(b"\r") for line in content.split(b"\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _lines_of_parquet(file: Path) -> list[bytes]:
    try:
        with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as source:
            batches = source.iter_batches(batch_size=BATCH_ROWS)
            if source.schema_arrow.equals(LINE):
                return _bounded(line for batch in batches for line in batch["line"].to_pylist())
            names = source.schema_arrow.names
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise ValueError(f'the column "{twice}" is there twice')
            return _as_lines("row", (row for batch in batches for row in _rows(batch)))
    except (pa.ArrowException, KeyError, OverflowError) as error:
        raise ValueError(f"it is no readable Parquet file: {error}") from error


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch. Raises an error of Arrow where nanoseconds would be lost."""
    exact = pa.schema([field.with_type(_in_microseconds(field.type)) for field in batch.schema])
    rows: list[dict[str, Any]] = batch.cast(exact).to_pylist(maps_as_pydicts="strict")
    return rows


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """The type with times in microseconds, the finest that Python has."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    return pa.time64("us") if kind == pa.time64("ns") else kind


def _avro(file: Path) -> Iterator[Any]:
    with file.open("rb") as content:
        try:
            yield from fastavro.reader(content)
        except Exception as error:
            raise ValueError(f"it is no readable Avro file: {error}") from error


def _csv(file: Path, columns: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(MAX_LINE_BYTES)
    with file.open(encoding="utf-8-sig", newline="") as content:
        rows = csv.reader(content, strict=True)
        try:
            names = next(rows, [])
            if not names or not all(names) or len(set(names)) < len(names):
                raise ValueError("expected a first line with a name for each field, no name twice")
            for row in filter(None, rows):
                if len(row) != len(names):
                    raise ValueError(
                        f"line {rows.line_num}: {len(row)} fields, and the first line names "
                        f"{len(names)}"
                    )
                yield {
                    name: _typed(text, columns.get(name, "STRING"), rows.line_num)
                    for name, text in zip(names, row, strict=True)
                }
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error


def _typed(text: str, kind: str, line: int) -> Any:
    """The value of a field of CSV: text where its column is, else null where it is empty."""
    if kind == "STRING":
        return text
    if not text:
        return None
    try:
        if kind == "JSON":
            return value_of(text)
        if kind == "BOOLEAN":
            return TRUTH[text]
        if kind in ("INT", "BIGINT") and WHOLE.fullmatch(text):
            return int(text)
        if kind not in ("INT", "BIGINT") and NUMERAL.fullmatch(text):
            return Decimal(text)
    except (ValueError, ArithmeticError, KeyError, RecursionError):
        pass
    raise ValueError(f"line {line}: expected {kind}, got {text[:60]!r}")


def _as_lines(what: str, records: Iterator[Any]) -> list[bytes]:
    return _bounded(_each_line(what, records))


def _each_line(what: str, records: Iterator[Any]) -> Iterator[bytes]:
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise ValueError(f"{what} {number}: expected fields, got {str(record)[:60]}")
        try:
            yield json_text(_plain(dict(record))).encode()
        except ValueError as error:
            raise ValueError(f"{what} {number}: {error}") from error


def _bounded(lines: Iterable[bytes | None]) -> list[bytes]:
    """The lines. Raises ValueError for one that is missing, and for too many bytes."""
    held, size = list[bytes](), 0
    for line in lines:
        if line is None:
            raise ValueError(f"record {len(held) + 1}: it has no line")
        held.append(line)
        if (size := size + len(line)) > MAX_BYTES:
            raise ValueError(f"its records are more than {MAX_BYTES:,} bytes; send a part of them")
    return held


def _plain(value: Any) -> Any:
    """A value as JSON holds it, fractions as Decimal."""
    match value:
        case None | bool() | int() | str():
            return value
        case Decimal() if value.is_finite():
            return value
        case float() if math.isfinite(value):
            return Decimal(repr(value))
        case dict() if all(isinstance(name, str) for name in value):
            return {name: _plain(each) for name, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case datetime():
            utc = value if value.tzinfo is None else value.astimezone(UTC)
            return utc.isoformat(sep=" ").replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
    raise ValueError(f"{type(value).__name__} {str(value)[:60]} has no form in JSON; convert it")
