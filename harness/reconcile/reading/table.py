"""One side as a table: fields that expressions may name, and where each record stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import FloatType

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.json.json_record import exact_json, numeral
from streamquake.harness.reconcile.json.json_text import json_text
from streamquake.topologies.problems import bad_input

Origin = Literal["declared", "json", "csv"]
"""What a field's type rests on: the file's own schema, each JSON value by itself, or nothing, as
CSV writes text only."""
MALFORMED, RAW = "__malformed", "__raw"


@dataclass(frozen=True, kw_only=True)
class Table:
    """`frame` has the fields, `place`, `MALFORMED` (could not be read) and `RAW` (what it was
    instead, where it could not be read)."""

    frame: DataFrame
    columns: tuple[str, ...]
    """What expressions may name, apart from `place`."""
    place: tuple[str, ...]
    origin: Origin = "declared"
    lane: tuple[str, ...] = ()
    """Where an order is known without being told, such as a partition; with `position`."""
    position: str | None = None
    partition: str | None = None
    """The partition of a topic that a record stands in."""
    deletes: str | None = None
    """Of a topic: the column that says whether a record has no value."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """JSON: field -> the column of `frame` that holds its values with their kinds."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """JSON: field without a variant -> the column that says whether a record has no such field."""
    all_unreadable: bool = False
    """There is no record that could be read, so nothing is known of the fields."""
    about: int = 1_000_000
    """How many records there are, roughly."""
    costly: bool = False
    """Reading it takes much more than comparing it, so it is worth keeping what was read."""
    persisted: tuple[DataFrame, ...] = ()
    """What was kept while it was read, to be let go at the end."""
    notes: tuple[str, ...] = ()
    """What was left out of the reading on purpose, in words."""


def as_json(table: Table) -> Column:
    """A record's fields as JSON text, from which they can be read again: floating point as its
    shortest numerals, which before Java 19 are not what Spark writes."""
    fields = (_as_written(table.frame, name).alias(name) for name in table.columns)
    return exact_json(json_text(F.struct(*fields)))


def _as_written(frame: DataFrame, name: str) -> Column:
    value = F.col(quote_name(name))
    if isinstance(frame.schema[name].dataType, FloatType):
        return numeral(value, bits=32).cast("double")
    return value


def reject_reserved(names: Iterable[str]) -> None:
    """Raise BadInput for fields that are called like columns of a table's own."""
    if own := {MALFORMED, RAW} & set(names):
        called = " and ".join(f"`{name}`" for name in sorted(own))
        raise bad_input("input", f"expected fields of other names than {called}; rename them")


def all_readable(rows: DataFrame) -> DataFrame:
    """Rows as a table's, of a reader that hands on no record that it could not read.

    Raises BadInput for columns that are called as a table's own.
    """
    reject_reserved(rows.columns)
    return rows.withColumns({MALFORMED: F.lit(False), RAW: F.lit(None).cast("string")})
