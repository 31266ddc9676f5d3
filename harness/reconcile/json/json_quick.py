"""Reads lines of JSON with guessed types, where the result is certain to be exact.

A variant keeps the kind of each value, but building and casting it costs more than the comparison.
Most lines are plain: each field has whole numbers, texts or booleans only. So the types are guessed
from the first records, and lines are parsed with these types. A line is *uncertain* unless it has
the form of the first ones (`json_record.py`). `json_table.py` reads uncertain lines again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.json.json_record import STRICT, LineForm

MIN_SAMPLE = 1000
"""With fewer records than this no types are guessed."""
TYPES: Mapping[str, DataType] = {
    "bigint": LongType(),
    "boolean": BooleanType(),
    "string": StringType(),
    "variant": VariantType(),
}
LONG = range(-(2**63), 2**63)
UNCERTAIN, TEXT = "__uncertain", "__text"


def guess_types(sample: LineForm, names: Iterable[str]) -> dict[str, str]:
    """Field -> the probable type of all its values, for fields whose first values have one type."""
    if len(sample.first) < MIN_SAMPLE:
        return {}
    first = map(_parse_record, sample.first[:MIN_SAMPLE])
    records = [record for record in first if record is not None]
    known = set().union(*sample.variants)
    kinds = {
        name: _common_kind([record.get(name) for record in records])
        for name in names
        if name in known
    }
    return {name: kind for name, kind in kinds.items() if kind is not None}


def read_with_types(
    lines: DataFrame,
    sample: LineForm,
    place: tuple[str, ...],
    cells: Mapping[str, str],
    kinds: Mapping[str, str],
) -> DataFrame:
    """Each field in its cell, with its type in `kinds` or else as a variant; `place`; `UNCERTAIN`;
    and `TEXT`, the line where it is uncertain."""
    fields = [StructField(name, TYPES[kinds.get(name, "variant")]) for name in cells]
    schema = StructType([*fields, StructField(UNCERTAIN, StringType())])
    options = {"columnNameOfCorruptRecord": UNCERTAIN, **STRICT}
    plain = sample.plain(F.col("value"), kinds)
    record = F.from_json(F.when(plain, F.col("value")), schema, options)
    parsed = lines.select(
        "value", *map(quote_name, place), record.alias("it"), plain.alias("plain")
    )
    field = F.col("it").getField
    # A whole number of 19 digits may be too large.
    conditions = [
        F.col("plain"),
        F.isnull(field(UNCERTAIN)),
        *(F.isnotnull(field(name)) for name in kinds),
    ]
    uncertain = ~F.coalesce(reduce(and_, conditions), F.lit(False))
    values = (field(name).alias(cell) for name, cell in cells.items())
    marked = parsed.select(*values, *map(quote_name, place), "value", uncertain.alias(UNCERTAIN))
    text = F.when(F.col(UNCERTAIN), F.col("value")).alias(TEXT)
    return marked.select(*cells.values(), *map(quote_name, place), UNCERTAIN, text)


def _parse_record(line: str | None) -> dict[str, object] | None:
    try:
        record = json.loads(line or "")
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _common_kind(values: list[object]) -> str | None:
    kinds = {_kind_of(value) for value in values}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of(value: object) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "bigint" if value in LONG else None
    return "string" if isinstance(value, str) else None
