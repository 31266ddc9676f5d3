"""One side as a table: the fields that expressions may read, and the place of each record."""

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
"""The origin of a field's type: the schema of the file, each JSON value, or none (CSV is text
only)."""
MALFORMED, RAW = "__malformed", "__raw"


@dataclass(frozen=True, kw_only=True)
class Table:
    """`frame` has the fields, `place`, `MALFORMED` (whether a record is unreadable) and `RAW` (the
    raw text of an unreadable record)."""

    frame: DataFrame
    columns: tuple[str, ...]
    """The fields that expressions may read, apart from `place`."""
    place: tuple[str, ...]
    hidden: frozenset[str] = frozenset()
    """Fields of the data that cannot be read, since a column of `place` has the same name."""
    origin: Origin = "declared"
    lane: tuple[str, ...] = ()
    """The unit with an order of its own, such as a partition; `position` is the place in it."""
    position: str | None = None
    partition: str | None = None
    """The column with the topic partition of a record."""
    deletes: str | None = None
    """Of a topic: the column that is true for a record without a value."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """JSON: field -> the column of `frame` with its values as variants."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """JSON: field without a variant -> the column that is true where a record lacks the field."""
    all_unreadable: bool = False
    """Whether no record is readable, so that no field is known."""
    record_estimate: int = 1_000_000
    """Rough number of records."""
    costly: bool = False
    """Whether a read takes much longer than a comparison, so that it should be persisted."""
    persisted_frames: tuple[DataFrame, ...] = ()
    """Frames that the read persisted, to release at the end."""
    notes: tuple[str, ...] = ()
    """Messages for the user about ignored files and records."""


def as_json(table: Table) -> Column:
    """The fields of a record as JSON text that can be read again. Floating point is written as its
    shortest numeral, which Spark does not write before Java 19."""
    fields = (_exact_value(table.frame, name).alias(name) for name in table.columns)
    return exact_json(json_text(F.struct(*fields)))


def _exact_value(frame: DataFrame, name: str) -> Column:
    value = F.col(quote_name(name))
    if isinstance(frame.schema[name].dataType, FloatType):
        return numeral(value, bits=32).cast("double")
    return value


def reject_reserved(names: Iterable[str], internal: Iterable[str] = ()) -> None:
    """Raise BadInput for fields with the names of internal columns; `internal` are further ones."""
    if own := {MALFORMED, RAW, *internal}.intersection(names):
        names_text = " and ".join(f"`{name}`" for name in sorted(own))
        raise bad_input("input", f"expected fields of other names than {names_text}; rename them")


def mark_all_readable(rows: DataFrame) -> DataFrame:
    """Rows of a reader that returns no unreadable records, marked as readable in the internal
    columns.

    Raises BadInput for columns with the names of internal ones.
    """
    reject_reserved(rows.columns)
    return rows.withColumns({MALFORMED: F.lit(False), RAW: F.lit(None).cast("string")})
