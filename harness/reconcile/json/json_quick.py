"""Lines of JSON read with types that were guessed, wherever that is certain to be exact.

A variant keeps each value's own kind, but making and casting it costs more than all that comes
after. Most lines are plain: whole numbers, texts, truth values, of one kind each. So the first
records say what to expect, lines are parsed with those types, and a line is *doubtful* unless it is
written as the first ones were (`json_record.py`). Doubtful lines are left to `json_table.py`.
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
from streamquake.harness.reconcile.json.json_record import STRICT, JsonLines

MIN_SAMPLE = 1000
"""Fewer records than this are not worth a guess."""
TYPES: Mapping[str, DataType] = {
    "bigint": LongType(),
    "boolean": BooleanType(),
    "string": StringType(),
    "variant": VariantType(),
}
LONG = range(-(2**63), 2**63)
UNCERTAIN, TEXT = "__doubt", "__text"


def guess_types(lines: JsonLines, names: Iterable[str]) -> dict[str, str]:
    """Field -> the type that all its values will probably have, as far as one was found."""
    if len(lines.first) < MIN_SAMPLE:
        return {}
    first = map(_parsed, lines.first[:MIN_SAMPLE])
    records = [each for each in first if each is not None]
    named = set().union(*lines.variants)
    kinds = {
        name: _kind([record.get(name) for record in records]) for name in names if name in named
    }
    return {name: kind for name, kind in kinds.items() if kind is not None}


def read_with_types(
    rows: DataFrame,
    lines: JsonLines,
    place: tuple[str, ...],
    cells: Mapping[str, str],
    kinds: Mapping[str, str],
) -> DataFrame:
    """Each field in its cell, with its type of `kinds` or else as a variant; `place`, `DOUBT`, and
    in `TEXT` the line where it is in doubt."""
    fields = [StructField(name, TYPES[kinds.get(name, "variant")]) for name in cells]
    schema = StructType([*fields, StructField(UNCERTAIN, StringType())])
    options = {"columnNameOfCorruptRecord": UNCERTAIN, **STRICT}
    plain = lines.plain(F.col("value"), kinds)
    read = F.from_json(F.when(plain, F.col("value")), schema, options)
    parsed = rows.select("value", *map(quote_name, place), read.alias("it"), plain.alias("plain"))
    field = F.col("it").getField
    # A whole number of 19 digits may be too large.
    proofs = [
        F.col("plain"),
        F.isnull(field(UNCERTAIN)),
        *(F.isnotnull(field(name)) for name in kinds),
    ]
    problem = ~F.coalesce(reduce(and_, proofs), F.lit(False))
    values = (field(name).alias(cell) for name, cell in cells.items())
    found = parsed.select(*values, *map(quote_name, place), "value", problem.alias(UNCERTAIN))
    text = F.when(F.col(UNCERTAIN), F.col("value")).alias(TEXT)
    return found.select(*cells.values(), *map(quote_name, place), UNCERTAIN, text)


def _parsed(line: str | None) -> dict[str, object] | None:
    try:
        record = json.loads(line or "")
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _kind(values: list[object]) -> str | None:
    kinds = {_kind_of(value) for value in values}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of(value: object) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "bigint" if value in LONG else None
    return "string" if isinstance(value, str) else None
