"""Lines of JSON read with types that were guessed, wherever that is certain to be exact.

A variant keeps each value's own kind, but making and casting it costs more than all that comes
after. Most lines are plain: whole numbers, texts, truth values, of one kind each. So the first
records say what to expect, lines are parsed with those types, and a line is *doubtful* unless it is
proven that a variant would have said the same. Doubtful lines are left to `json_table.py`.

Whole numbers and truth values prove themselves: Spark's reader takes nothing else for them. For a
text it takes any value, so there the line must show a quote right after the last `"name":`; in a
flat object without a backslash before it that can only be the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
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

ENOUGH = 1000
"""Fewer records than this are not worth a guess."""
PLAIN = re.compile("[A-Za-z0-9_ .-]+")
"""Names that stand in a line as they are."""
TYPES: Mapping[str, DataType] = {
    "bigint": LongType(), "boolean": BooleanType(), "string": StringType(),
    "variant": VariantType(),
}  # fmt: skip
LONG = range(-(2**63), 2**63)
DOUBT, TEXT = "__doubt", "__text"


def guessed(lines: DataFrame, names: Iterable[str]) -> dict[str, str]:
    """Field -> the type that all its values will probably have, as far as one was found."""
    first = [row.value for row in lines.select("value").take(ENOUGH)]
    if len(first) < ENOUGH:
        return {}
    records = [each for each in map(_parsed, first) if each is not None]
    flat = all("}" not in (line or "")[:-1] for line in first)
    kinds = {name: _kind([record.get(name) for record in records]) for name in names}
    return {
        name: kind
        for name, kind in kinds.items()
        if kind is not None and (kind != "string" or (flat and PLAIN.fullmatch(name)))
    }


def quick(
    lines: DataFrame, place: tuple[str, ...], cells: Mapping[str, str], kinds: Mapping[str, str]
) -> DataFrame:
    """Each field in its cell, with its type of `kinds` or else as a variant; `place`, `DOUBT`, and
    in `TEXT` the line where it is in doubt."""
    fields = [StructField(name, TYPES[kinds.get(name, "variant")]) for name in cells]
    schema = StructType([*fields, StructField(DOUBT, StringType())])
    options = {"columnNameOfCorruptRecord": DOUBT, "mode": "PERMISSIVE"}
    parsed = lines.select("value", *place, F.from_json("value", schema, options).alias("it"))
    field = F.col("it").getField
    proofs = [one_object(F.col("value")), F.isnull(field(DOUBT))]
    proofs += [F.isnotnull(field(name)) for name in kinds]
    if texts := [name for name, kind in kinds.items() if kind == "string"]:
        proofs += [_flat(F.col("value")), ~_escaped_names(F.col("value"))]
        proofs += [_quoted(F.col("value"), name) for name in texts]
    doubt = ~F.coalesce(reduce(and_, proofs), F.lit(False))
    values = (field(name).alias(cell) for name, cell in cells.items())
    found = parsed.select(*values, *place, "value", doubt.alias(DOUBT))
    text = F.when(F.col(DOUBT), F.col("value")).alias(TEXT)
    return found.select(*cells.values(), *place, DOUBT, text)


def one_object(value: Column) -> Column:
    """Whether a text is one object and nothing behind it.

    Spark's reader stops at the object's end, so that two records torn into one line would pass for
    the first. A text whose first closing brace is its end has nothing behind it; any other is
    parsed once more as the first of two elements of a list.
    """
    text = F.trim(value, F.lit(" \t\r\n"))
    flat = F.instr(text, "}") == F.length(text)
    alone = F.expr("json_array_length(concat('[', value, ',0]')) <=> 2")
    return (
        F.startswith(text, F.lit("{"))
        & F.endswith(text, F.lit("}"))
        & F.expr("is_valid_utf8(value)")
        & (flat | alone)
    )


def _flat(value: Column) -> Column:
    """Whether the first closing brace is the line's end: there is no object in the object."""
    return F.instr(value, "}") == F.length(value)


def _escaped_names(value: Column) -> Column:
    """Whether a plain name may be hidden: `\\u0061` is an `a`."""
    return F.contains(value, F.lit("\\u00")) & value.rlike(r"\\u00[2-7]")


def _quoted(value: Column, name: str) -> Column:
    """Whether the field is a text, where it is there and the object is flat."""
    field = f'"{name}":'
    behind = F.substring_index(value, field, -1)
    return F.startswith(F.ltrim(behind), F.lit('"')) & ~F.contains(value, F.lit("\\" + field))


def _parsed(line: str | None) -> dict[str, object] | None:
    try:
        record = json.loads(line or "")
    except ValueError:
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
