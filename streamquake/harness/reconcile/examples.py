"""Examples: a few records of each class, with their places and values on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.reconcile.shape import Shape
from streamquake.reports.outcome import Finding

MAX_EXAMPLES = 8
MAX_COPIES = 4
"""Copies of one record that are shown."""


def examples_of(
    found: DataFrame, expected: DataFrame, actual: DataFrame, shape: Shape
) -> tuple[Finding, ...]:
    """Up to `MAX_EXAMPLES` findings for each class of the drill, lowest identities first."""
    chosen = _chosen(found, shape)
    if not chosen:
        return ()
    expecting = replace(shape, lane=(), position=None)
    sent = _rows_of(expected, chosen, (*shape.identity, *shape.compare), expecting)
    raw = (shape.raw,) if shape.raw else ()
    seen = _rows_of(actual, chosen, (*shape.identity, *shape.compare, *shape.place, *raw), shape)
    return tuple(
        Finding(
            what="phantom, though the send was refused" if name == "phantom" and row.refused
            else name,
            where=_places(seen.get(_identity(row, shape), ()), shape),
            detail=_detail(row, name, sent, seen, shape),
        )
        for name, row in chosen
    )  # fmt: skip


def reordered_examples(back: DataFrame, shape: Shape) -> tuple[Finding, ...]:
    """Up to `MAX_EXAMPLES` records that came after a later one, in the order of their places."""
    return tuple(
        Finding(
            what="reordered",
            where=_place(row, shape),
            detail=_values(row, (*shape.identity, "before")),
        )
        for row in back.orderBy(*shape.place).take(MAX_EXAMPLES)
    )


def _chosen(found: DataFrame, shape: Shape) -> list[tuple[str, Row]]:
    classes = [name for name in VIOLATIONS if name in found.columns]
    parts = [
        found.where(F.col(name) > 0)
        .orderBy(*shape.identity)
        .limit(MAX_EXAMPLES)
        .withColumn("class", F.lit(name))
        for name in classes
    ]
    rows = reduce(DataFrame.unionByName, parts).collect()
    return [(name, row) for name in classes for row in rows if row["class"] == name]


def _rows_of(
    side: DataFrame, chosen: Iterable[tuple[str, Row]], columns: Iterable[str], shape: Shape
) -> Mapping[tuple[Any, ...], list[Row]]:
    """The rows of a side that stand for the chosen identities."""
    wanted = {_identity(row, shape) for _, row in chosen}
    any_of = reduce(lambda a, b: a | b, (_is(identity, shape) for identity in wanted))
    copies = Window.partitionBy(*shape.identity).orderBy(*(shape.place or shape.identity))
    few = side.where(any_of).withColumn("_copy", F.row_number().over(copies))
    rows: dict[tuple[Any, ...], list[Row]] = {}
    for row in few.where(F.col("_copy") <= MAX_COPIES).select(*columns).collect():
        rows.setdefault(_identity(row, shape), []).append(row)
    return rows


def _is(identity: tuple[Any, ...], shape: Shape) -> Any:
    same = (F.col(c).eqNullSafe(F.lit(v)) for c, v in zip(shape.identity, identity, strict=True))
    return reduce(lambda a, b: a & b, same)


def _identity(row: Row, shape: Shape) -> tuple[Any, ...]:
    return tuple(row[name] for name in shape.identity)


def _detail(
    row: Row, name: str, sent: Mapping[Any, list[Row]], seen: Mapping[Any, list[Row]], shape: Shape
) -> dict[str, Any]:
    identity = _identity(row, shape)
    detail: dict[str, Any] = dict(zip(shape.identity, identity, strict=True))
    if name == "duplicated":
        detail["extra_copies"] = row.duplicated
    detail["sent"] = [_values(each, shape.compare) for each in sent.get(identity, ())]
    # A record that could not be read has only nulls; what it was instead says more.
    unread = shape.raw is not None and all(part is None for part in identity)
    shown = (str(shape.raw),) if unread else shape.compare
    detail["seen"] = [_values(each, shown) for each in seen.get(identity, ())]
    return detail


def _values(row: Row, columns: Iterable[str]) -> dict[str, Any]:
    return {name.removeprefix("_"): row[name] for name in columns}


def _places(rows: Iterable[Row], shape: Shape) -> str:
    return "; ".join(_place(row, shape) for row in rows)


def _place(row: Row, shape: Shape) -> str:
    return ", ".join(f"{name.removeprefix('_')} {row[name]}" for name in shape.place)
