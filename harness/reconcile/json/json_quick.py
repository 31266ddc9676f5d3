"""Reads lines of JSON with guessed types, where the result is certain to be exact.

A variant keeps the kind of each value, but building and casting it costs more than the comparison.
Most lines are plain: each field has whole numbers, texts or booleans only. So the types are guessed
from the first records, and lines are parsed with these types. A line is *uncertain* unless it has
the form of the first ones (`json_record.py`). `json_table.py` reads uncertain lines again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.json.json_record import LineForm
from streamquake.harness.reconcile.json.plain_lines import LONG
from streamquake.harness.reconcile.json.quick_record import quick_records

MIN_SAMPLE = 1000
"""With fewer records than this no types are guessed."""
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
    quick = quick_records(
        lines, "value", sample, {name: kinds.get(name, "variant") for name in cells}
    )
    values = (quick.fields[name].alias(cell) for name, cell in cells.items())
    return quick.frame.select(
        *values,
        *map(quote_name, place),
        (~quick.plain).alias(UNCERTAIN),
        F.when(~quick.plain, F.col("value")).alias(TEXT),
    )


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
