"""Lines of JSON as a table that preserves each value exactly.

A field is parsed as a variant. It keeps whole numbers and decimals of 38 digits exact, and
distinguishes text from numbers, and null from a missing field. `json_quick.py` reads the same
values with less work where that is certain. Types are inferred over all records, not over a sample:
a field whose values are of one kind has that type in computations. A line that is no record
(`json_record.py`) is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, VariantType

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.json.json_quick import (
    TEXT,
    UNCERTAIN,
    guess_types,
    read_with_types,
)
from streamquake.harness.reconcile.json.json_record import (
    STRICT,
    LineForm,
    record_of,
    sample_lines,
)
from streamquake.harness.reconcile.reading.table import (
    MALFORMED,
    RAW,
    Table,
    mark_all_readable,
    reject_reserved,
)

_CORRUPT, _RECORD = "__corrupt", "__record"
_CELL, _MISSING = "__field_", "_missing"
_HIDDEN = "__hidden_"
_INTERNAL = re.compile(
    rf"(?:{_CELL}|{_HIDDEN})[0-9]+(?:{_MISSING})?|{_CORRUPT}|{_RECORD}|{UNCERTAIN}|{TEXT}"
)
"""Names of columns beside those of the fields."""
MANY_UNCERTAIN = 0.3
"""Above this share of uncertain lines the records should be persisted."""
FIELDS_SAMPLE = 1000
"""Records that are read to list the known fields, for a message about an unknown one."""


def json_table(
    lines: DataFrame,
    place: tuple[str, ...],
    names: Iterable[str],
    *,
    lane: tuple[str, ...] = (),
    position: str | None = None,
) -> Table:
    """The table of `lines`, which have the columns `value` and `place`. A null value (a tombstone)
    is a record without fields."""
    requested = sorted(set(names) - set(place))
    reject_reserved(requested, [name for name in requested if _INTERNAL.fullmatch(name)])
    cells = {name: f"{_CELL}{number}" for number, name in enumerate(requested)}
    places = {name: f"{_HIDDEN}{number}" for number, name in enumerate(_named_places(place, names))}
    sample = sample_lines(lines)
    kinds = guess_types(sample, requested)
    rows = _parse_with_guess(lines, sample, place, cells, places, kinds) if kinds else None
    if rows is None:
        kinds, rows = {}, _parse_exactly(lines, sample, place, cells, places)
    variant_cells = {name: cells[name] for name in requested if name not in kinds}
    survey = (
        _survey(rows.frame, variant_cells, rows.unchecked)
        if variant_cells or not kinds
        else _FieldSurvey()
    )
    typed = {name: F.col(cells[name]) for name in kinds}
    typed |= {name: _cast_field(cells[name], kind) for name, kind in survey.kinds.items()}
    columns = tuple(sorted(typed)) if len(typed) == len(cells) else _fields(lines, place)
    return Table(
        frame=rows.frame.withColumns(typed),
        columns=columns,
        place=place,
        hidden=rows.hidden | survey.hidden,
        origin="json",
        lane=lane,
        position=position,
        variants={name: cells[name] for name in survey.kinds},
        missing={name: cells[name] + _MISSING for name in kinds},
        all_unreadable=not kinds and not survey.readable,
        persisted_frames=rows.persisted_frames,
        # A cast of a variant costs as much as its parsing, and every pass would repeat it.
        costly=rows.costly or bool(survey.kinds),
    )


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Records with a cell for each field, a variant unless its type was guessed."""

    frame: DataFrame
    persisted_frames: tuple[DataFrame, ...]
    costly: bool
    hidden: frozenset[str] = frozenset()
    """The fields that are known to be hidden (`Table.hidden`)."""
    unchecked: Mapping[str, str] = field(default_factory=dict)
    """Column of the place -> the cell of the field of this name, if any record has one."""


@dataclass(frozen=True, kw_only=True)
class _FieldSurvey:
    """The number of readable records, the common type of all values of each variant field, and the
    fields that are hidden."""

    readable: int = 0
    kinds: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()


def _named_places(place: Iterable[str], names: Iterable[str]) -> list[str]:
    """The columns of the place that expressions name, except partition folders: these override a
    field of the same name."""
    return sorted(name for name in set(place).intersection(names) if name.startswith("_"))


def _survey(rows: DataFrame, cells: Mapping[str, str], places: Mapping[str, str]) -> _FieldSurvey:
    surveyed = rows.agg(
        F.count_if(~F.col(MALFORMED)).alias("readable"),
        *(F.expr(f"schema_of_variant_agg({cell})").alias(f"type{cell}") for cell in cells.values()),
        *(F.count(cell).alias(cell) for cell in (*cells.values(), *places.values())),
    ).first()
    assert surveyed is not None
    return _FieldSurvey(
        readable=surveyed.readable,
        kinds={name: surveyed[f"type{cell}"] for name, cell in cells.items() if surveyed[cell]},
        hidden=frozenset(name for name, cell in places.items() if surveyed[cell]),
    )


def _parse_with_guess(
    lines: DataFrame,
    sample: LineForm,
    place: tuple[str, ...],
    cells: Mapping[str, str],
    places: Mapping[str, str],
    kinds: Mapping[str, str],
) -> _Rows | None:
    """The records parsed with the guessed types; None where the guess was wrong."""
    parsed_rows = read_with_types(lines, sample, place, cells, kinds).persist(
        StorageLevel.MEMORY_AND_DISK
    )
    count = parsed_rows.agg(
        F.count(F.lit(1)).alias("lines"), F.count_if(UNCERTAIN).alias("uncertain")
    ).first()
    assert count is not None
    missing = {cells[name] + _MISSING: F.lit(False) for name in kinds}
    certain = mark_all_readable(
        parsed_rows.where(~F.col(UNCERTAIN)).drop(UNCERTAIN, TEXT).withColumns(missing)
    )
    # A line is only certain where it has the names of a line of the sample, and no others.
    hidden = frozenset(places).intersection(chain(*sample.variants))
    if not count.uncertain:
        return _Rows(frame=certain, persisted_frames=(parsed_rows,), costly=False, hidden=hidden)
    uncertain = parsed_rows.where(UNCERTAIN).select(
        F.col(TEXT).alias("value"), *map(quote_name, place)
    )
    rest = _parse_lines(uncertain, sample, place, {**cells, **places}).persist(
        StorageLevel.MEMORY_AND_DISK
    )
    survey = _survey(rest, {name: cells[name] for name in kinds}, places)
    if any(kind not in (kinds[name].upper(), "VOID") for name, kind in survey.kinds.items()):
        parsed_rows.unpersist()
        rest.unpersist()
        return None
    typed = {cells[name] + _MISSING: F.isnull(cells[name]) for name in kinds}
    typed |= {cells[name]: F.col(cells[name]).cast(kind) for name, kind in kinds.items()}
    records = certain.unionByName(rest.drop(*places.values()).withColumns(typed))
    return _Rows(
        frame=records,
        persisted_frames=(parsed_rows, rest),
        costly=count.uncertain > count.lines * MANY_UNCERTAIN,
        hidden=hidden | survey.hidden,
    )


def _parse_exactly(
    lines: DataFrame,
    sample: LineForm,
    place: tuple[str, ...],
    cells: Mapping[str, str],
    places: Mapping[str, str],
) -> _Rows:
    """The records parsed without a guess."""
    parsed_rows = _parse_lines(lines, sample, place, {**cells, **places})
    # Persisted, since the types must be known before the comparison starts.
    parsed_rows = parsed_rows.persist(StorageLevel.MEMORY_AND_DISK)
    return _Rows(frame=parsed_rows, persisted_frames=(parsed_rows,), costly=True, unchecked=places)


def _parse_lines(
    lines: DataFrame, sample: LineForm, place: tuple[str, ...], cells: Mapping[str, str]
) -> DataFrame:
    fields = [StructField(name, VariantType()) for name in cells]
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    options = {"columnNameOfCorruptRecord": _CORRUPT, **STRICT}
    records = lines.withColumn(_RECORD, record_of(F.col("value"), sample, cells))
    parsed = records.withColumn("it", F.from_json(_RECORD, schema, options))
    malformed = F.isnotnull("value") & (F.isnull("it") | F.isnotnull(f"it.{_CORRUPT}"))
    marked = parsed.withColumn(MALFORMED, malformed)
    return marked.select(
        *(
            F.when(~F.col(MALFORMED), F.col("it").getField(name)).alias(cell)
            for name, cell in cells.items()
        ),
        *map(quote_name, place),
        MALFORMED,
        F.when(F.col(MALFORMED), F.col("value")).alias(RAW),
    )


def _cast_field(cell: str, kind: str) -> Column:
    """A field with the common type of all its values; a variant where they are of several kinds."""
    if kind == "VARIANT":
        return F.col(cell)
    if kind == "VOID":
        return F.lit(None)
    # A field that is always null within an object has no type to cast to.
    typed = re.sub(r"\bVOID(?=[,>])", "STRING", kind.replace("OBJECT<", "STRUCT<"))
    return F.col(cell).cast(typed)


def _fields(lines: DataFrame, place: tuple[str, ...]) -> tuple[str, ...]:
    """The fields of the first records, for a message."""
    name_column = F.explode(F.expr("json_object_keys(value)"))
    names = lines.select("value").limit(FIELDS_SAMPLE).select(name_column.alias("field")).distinct()
    return tuple(sorted(row.field for row in names.collect() if row.field not in place))
