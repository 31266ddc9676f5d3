"""Examples: a few records of each class, with their places and values on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from operator import itemgetter
from typing import Any

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.json.json_text import base64_text, json_text
from streamquake.harness.reconcile.order import BEFORE
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.reconcile.row_hashes import hash_of
from streamquake.harness.reconcile.shape import DETAILS, Shape
from streamquake.harness.reconcile.values.canonical import display_value
from streamquake.harness.reconcile.values.nested import NESTED_MARK
from streamquake.reports.record.outcome import Finding

MAX_EXAMPLES = 8
MAX_COPIES = 4
"""Copies of one record that an example shows."""
_COPY = "_copy"
TIMES = (DateType, TimestampType, TimestampNTZType, YearMonthIntervalType)
MAX_TEXT = 500
"""Characters of a value that an example shows; a record may be as large as a broker accepts."""


def examples_of(
    anomalies: DataFrame, expected: DataFrame, actual: DataFrame, shape: Shape
) -> tuple[Finding, ...]:
    """Up to `MAX_EXAMPLES` findings for each class of the row diff, lowest identities first."""
    examples = _choose_examples(anomalies, shape)
    if not examples:
        return ()
    expected_shape = replace(shape, lane=(), position=None, display_columns=())
    hashes = [row.hash for _, row in examples]
    sent = _rows_of(expected, hashes, (*shape.identity, *shape.compare), expected_shape)
    raw = (shape.raw,) if shape.raw else ()
    received = _rows_of(
        actual, hashes, (*shape.identity, *shape.compare, *shape.displayed_place, *raw), shape
    )
    return tuple(
        Finding(
            what="phantom, though the send was refused"
            if name == "phantom" and row.refused
            else name,
            where=_places(received.get(_identity(row, shape), ()), shape),
            detail=_detail(row, name, sent, received, shape),
        )
        for name, row in examples
    )


def reordered_examples(
    out_of_order: DataFrame, actual: DataFrame, shape: Shape, *, what: str = "reordered"
) -> tuple[Finding, ...]:
    """Up to `MAX_EXAMPLES` records that arrived after a later one, in the order of their places.

    The shown columns are looked up for these few records: carrying them through the sort of all
    records would cost more than the sort.
    """
    hashed = out_of_order.withColumn("hash", hash_of(shape.identity))
    rows = with_python_types(hashed.orderBy(*shape.place)).take(MAX_EXAMPLES)
    columns = (*shape.identity, *shape.place, *shape.displayed_place)
    received = (
        _rows_of(actual, [row.hash for row in rows], columns, shape)
        if shape.display_columns
        else {}
    )
    return tuple(
        Finding(
            what=what,
            where=_place_of_copy(row, received.get(_identity(row, shape), [row]), shape),
            detail={
                "before": clip(_plain_value(row[BEFORE])),
                **_identity_values(row, shape),
            },
        )
        for row in rows
    )


def with_python_types(frame: DataFrame) -> DataFrame:
    """A frame that Python can collect: times and bytes become text. Python has no year beyond 9999
    and no months without a day, and cannot use bytearrays as keys."""
    texts = {
        field.name: _text_of(field.name, field.dataType)
        for field in frame.schema
        if _becomes_text(field.dataType)
    }
    return frame.withColumns(texts) if texts else frame


def _text_of(name: str, kind: DataType) -> Column:
    value = F.col(quote_name(name))
    if isinstance(kind, BinaryType):
        return base64_text(value)
    return value.cast("string") if isinstance(kind, TIMES) else json_text(F.struct(value))


def _becomes_text(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_becomes_text(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _becomes_text(kind.elementType)
    if isinstance(kind, MapType):
        return _becomes_text(kind.keyType) or _becomes_text(kind.valueType)
    return isinstance(kind, (BinaryType, *TIMES))


def finding_at(what: str, row: Row, shape: Shape, reported: Iterable[str]) -> Finding:
    """An example of one actual record: its place, its identity and the `reported` columns."""
    return Finding(
        what=what,
        where=_place(row, shape),
        detail={**_identity_values(row, shape), **_values(row, reported, shape)},
    )


def presented(finding: Finding) -> Finding:
    """A finding of a run with its identity as people read it. Until then it has the values of the
    data, by which its record is found."""
    shown = {
        name: value if name in DETAILS else clip(_plain_value(value))
        for name, value in finding.detail.items()
    }
    return replace(finding, detail=shown)


def _place_of_copy(row: Row, copies: Iterable[Row], shape: Shape) -> str:
    """The place of that copy of a record which is at the place of `row`."""
    copies_at_place = (
        copy for copy in copies if all(copy[name] == row[name] for name in shape.place)
    )
    return next((_place(copy, shape) for copy in copies_at_place), "")


def _choose_examples(anomalies: DataFrame, shape: Shape) -> list[tuple[str, Row]]:
    """The examples as pairs (class, row of the anomaly), class by class."""
    classes = [name for name in VIOLATIONS if name in anomalies.columns]
    row_classes = F.array(*(F.when(F.col(name) > 0, F.lit(name)) for name in classes))
    first = Window.partitionBy("class").orderBy(*shape.identity)
    examples = (
        anomalies.withColumn("class", F.explode(F.array_compact(row_classes)))
        .withColumn("_rank", F.row_number().over(first))
        .where(F.col("_rank") <= MAX_EXAMPLES)
        .withColumn("hash", hash_of(shape.identity))
    )
    rows = with_python_types(examples).collect()
    rows.sort(key=lambda row: (classes.index(row["class"]), row["_rank"]))
    return [(row["class"], row) for row in rows]


def _rows_of(
    side: DataFrame, hashes: Sequence[int], columns: Iterable[str], shape: Shape
) -> Mapping[tuple[Any, ...], list[Row]]:
    """The first `MAX_COPIES` rows of each identity with one of these hashes, by their places."""
    matching = side.where(hash_of(shape.identity).isin(list(hashes)))
    by_place = map(quote_name, shape.displayed_place or shape.identity)
    copies = Window.partitionBy(*map(quote_name, shape.identity)).orderBy(*by_place)
    first = (
        matching.select(*map(quote_name, dict.fromkeys(columns)))
        .withColumn(_COPY, F.row_number().over(copies))
        .where(F.col(_COPY) <= MAX_COPIES)
    )
    rows: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(with_python_types(first).collect(), key=itemgetter(_COPY)):
        rows.setdefault(_identity(row, shape), []).append(row)
    return rows


def _identity(row: Row, shape: Shape) -> tuple[Any, ...]:
    return tuple(_equal_to_itself(row[name]) for name in shape.identity)


def _equal_to_itself(value: Any) -> Any:
    """The value; NaN, which in Python equals no NaN, as a text."""
    return "NaN" if value != value else value


def _detail(
    row: Row,
    name: str,
    sent: Mapping[Any, list[Row]],
    received: Mapping[Any, list[Row]],
    shape: Shape,
) -> dict[str, Any]:
    identity = _identity(row, shape)
    detail = _identity_values(row, shape)
    if name == "duplicated":
        detail["extra_copies"] = row.duplicated
    detail["sent"] = [_values(copy, shape.compare, shape) for copy in sent.get(identity, ())]
    # An unreadable record has only nulls; its raw text explains more.
    unreadable = shape.raw is not None and all(part is None for part in identity)
    columns = (str(shape.raw),) if unreadable else shape.compare
    detail["seen"] = [_values(copy, columns, shape) for copy in received.get(identity, ())]
    return detail


def _identity_values(row: Row, shape: Shape) -> dict[str, Any]:
    return {shape.title(name): row[name] for name in shape.identity}


def _values(row: Row, columns: Iterable[str], shape: Shape) -> dict[str, Any]:
    return {shape.title(name): clip(_plain_value(row[name])) for name in columns}


def _plain_value(value: Any) -> Any:
    """A value of a run as people read it. A struct, list or map is stored as text with kinds."""
    if isinstance(value, str) and value.startswith((f"{NESTED_MARK}{{", f"{NESTED_MARK}[")):
        # A plain text may begin with the mark too.
        with suppress(ValueError, AttributeError, RecursionError):
            return display_value(value)
    return value


def clip(value: Any) -> Any:
    """A value as it is shown: a long text becomes its beginning and its length, and a number that
    JSON lacks, such as NaN, a text."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]}… ({len(value):,} characters)"
    return value


def _places(rows: Iterable[Row], shape: Shape) -> str:
    return "; ".join(_place(row, shape) for row in rows)


def _place(row: Row, shape: Shape) -> str:
    return ", ".join(f"{shape.title(name)} {row[name]}" for name in shape.displayed_place)
