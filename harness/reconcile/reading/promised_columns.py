"""Parses raw records into the columns of the expected side.

Values are JSON records (`json_record.py`) in the shape of the job (`custom_shape.py`), or records
of declared types. A field must have exactly the type of its column (`promised.py`, `declared.py`).
A record that cannot be parsed, or has a field of another type, is malformed: its columns are null,
and it counts as a phantom. Columns of places have a leading underscore, which distinguishes them
from the columns of the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType, VariantType

from streamquake.harness.reconcile.json.json_record import (
    STRICT,
    not_blank,
    sample_lines,
)
from streamquake.harness.reconcile.json.quick_record import (
    QUICK,
    TYPES,
    QuickRecords,
    quick_records,
)
from streamquake.harness.reconcile.reading.custom_shape import CustomShape, Tree, custom_shape
from streamquake.harness.reconcile.values.declared import (
    FOLDERS,
    RECORD,
    declared_fields,
    without_types,
)
from streamquake.harness.reconcile.values.operand import part
from streamquake.harness.reconcile.values.promised import promised_value
from streamquake.topologies.problems import bad_input

KAFKA_LANE, KAFKA_POSITION = ("_partition",), "_offset"
FILE_LANE, FILE_POSITION = ("_file",), "_position"
TABLE_LANE, TABLE_POSITION = ("_table",), "_row"
MALFORMED, RAW = "_malformed", "_value"
_PROMISED = "__promised"
_CORRUPT, _EXACT = "_corrupt", "_exact"
FIELDS_BY_NAME: Mapping[str, str] = {}
"""Each column is the field of its name."""


def parse_records(
    raw: DataFrame,
    promised_frame: DataFrame,
    columns: Sequence[str],
    place: Sequence[str],
    column_expressions: Mapping[str, str] = FIELDS_BY_NAME,
    *,
    fields: Mapping[str, str] = FIELDS_BY_NAME,
    deletes: str | None = None,
) -> DataFrame:
    """Parse the `columns`, with their types in `promised_frame`, and add `place`, `MALFORMED` and
    `RAW`. Arrays, structs and maps are text (`promised.py`). `column_expressions` has the
    expression of each column that is not the field of its name; expressions may also read the
    columns of `raw`; `fields` has the field of each column that is not called as it. Lines of white
    space are no records. With `deletes`, a record without a value deletes the identity in its key;
    the column of this name marks it. Raises BadInput for an expression that does not fit."""
    place_columns = {
        f"_{name}": F.col(name) for name in raw.columns if name not in ("value", RECORD)
    }
    shape = custom_shape(promised_frame, columns, column_expressions, place_columns, fields)
    _reject_own_names(shape, place_columns)
    if RECORD in raw.columns:
        parsed_fields = _read_declared(raw, shape, place_columns)
        values = shape.columns(parsed_fields, promised_frame, _PROMISED)
    else:
        parsed_fields = _read_lines(raw, shape, place_columns)
        values = shape.columns(parsed_fields, promised_frame)
    no_value = F.isnull(RAW) if deletes else F.lit(False)
    # Not a column of that frame: a field of this name would be replaced.
    malformed = F.col(_CORRUPT) & ~no_value
    readable = [F.when(~malformed, value).alias(name) for name, value in values.items()]
    mark = [(no_value & ~malformed).alias(deletes)] if deletes else []
    return parsed_fields.select(*readable, *place, *mark, malformed.alias(MALFORMED), RAW)


def _reject_own_names(shape: CustomShape, place_columns: Mapping[str, Column]) -> None:
    """Raise BadInput for a field with the name of a column that is beside the fields."""
    own = {RAW, _CORRUPT, _EXACT, _PROMISED, QUICK, *place_columns}
    if clashing := sorted(own.intersection(shape.tree)):
        names = ", ".join(f"`{name}`" for name in clashing)
        message = f"the job's fields {names} have names of internal columns; rename them in the job"
        raise bad_input("expected", message)


@dataclass(frozen=True, kw_only=True)
class _Field:
    """The value of a field, and whether it has the promised type."""

    value: Column
    fits: Column


def _with_aliases(columns: Mapping[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]


def _read_declared(
    raw: DataFrame, shape: CustomShape, place_columns: Mapping[str, Column]
) -> DataFrame:
    """Read the fields of the shape from records of declared types: with the promised types in
    `_PROMISED`, and with their own types beside it. `_CORRUPT` is as in `_parse_fields`."""
    kind = raw.schema[RECORD].dataType
    fields, fits = declared_fields(F.col(RECORD), kind, shape.tree)
    own_types, _ = declared_fields(F.col(RECORD), kind, without_types(shape.tree))
    promised_fields = [F.struct(*_with_aliases(fields)).alias(_PROMISED)] if fields else []
    corrupt = F.isnull(RECORD) | ~F.coalesce(fits, F.lit(False))
    return raw.select(
        *promised_fields,
        *_with_aliases(own_types),
        F.col("value").alias(RAW),
        *_with_aliases(place_columns),
        corrupt.alias(_CORRUPT),
    )


def _read_lines(
    raw: DataFrame, shape: CustomShape, place_columns: Mapping[str, Column]
) -> DataFrame:
    """Read the fields of the shape from lines of JSON. A partition folder overrides a field."""
    lines = raw.where(not_blank(raw["value"])) if "file" in raw.columns else raw
    renamed = lines.select(F.col("value").alias(RAW), *_with_aliases(place_columns))
    kind = raw.schema[FOLDERS].dataType if FOLDERS in raw.columns else StructType()
    folder_names = kind.names if isinstance(kind, StructType) else []
    of_lines = {
        name: field_kind for name, field_kind in shape.tree.items() if name not in folder_names
    }
    parsed_fields = _parse_fields(renamed, replace(shape, tree=of_lines), tuple(place_columns))
    of_folders = {
        name: field_kind for name, field_kind in shape.tree.items() if name in folder_names
    }
    fields, fits = declared_fields(F.col(f"_{FOLDERS}"), kind, of_folders)
    corrupt = F.col(_CORRUPT) | ~F.coalesce(fits, F.lit(False))
    return parsed_fields.withColumns({**fields, _CORRUPT: corrupt}) if fields else parsed_fields


def _parse_fields(
    lines: DataFrame, shape: CustomShape, place_columns: tuple[str, ...]
) -> DataFrame:
    """Parse the fields of the shape. `_CORRUPT` is true for a line that is no record with them."""
    sample = sample_lines(lines.withColumnRenamed(RAW, "value"))
    kinds = {
        name: kind.simpleString()
        for name, kind in shape.tree.items()
        if isinstance(kind, DataType) and kind.simpleString() in TYPES and kind != VariantType()
    }
    names = tuple(shape.tree)
    quick = quick_records(
        lines, RAW, sample, {name: kinds.get(name, "variant") for name in names}, rewrite=True
    )
    parsed = quick.frame.withColumn(_EXACT, _parse_json(quick.rewritten, names))
    fields = {name: _field(name, kind, kinds, quick) for name, kind in shape.tree.items()}
    fits = reduce(and_, (field.fits for field in fields.values()), F.lit(True))
    is_record = quick.plain | (F.isnotnull(_EXACT) & F.isnull(f"{_EXACT}.{_CORRUPT}"))
    return parsed.select(
        *(field.value.alias(name) for name, field in fields.items()),
        RAW,
        *place_columns,
        (~F.coalesce(is_record & fits, F.lit(False))).alias(_CORRUPT),
    )


def _parse_json(record: Column, names: Sequence[str]) -> Column:
    fields = [StructField(name, VariantType()) for name in names]
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    return F.from_json(record, schema, {"columnNameOfCorruptRecord": _CORRUPT, **STRICT})


def _field(
    name: str, kind: DataType | Tree | None, kinds: Mapping[str, str], quick: QuickRecords
) -> _Field:
    """A field of the first level, from the quick parse of a line or from the exact one."""
    value, exact = quick.fields[name], F.col(_EXACT).getField(name)
    if name not in kinds:
        return _of_variant(F.when(quick.plain, value).otherwise(exact), kind)
    exact_field = _of_variant(exact, kind)
    return _Field(
        value=F.when(quick.plain, value).otherwise(exact_field.value),
        fits=quick.plain | exact_field.fits,
    )


def _of_variant(cell: Column, kind: DataType | Tree | None) -> _Field:
    if isinstance(kind, dict):
        parts = {name: _of_variant(part(cell, name), part_kind) for name, part_kind in kind.items()}
        return _Field(
            value=F.struct(*(part.value.alias(name) for name, part in parts.items())),
            fits=reduce(and_, (part.fits for part in parts.values()), F.lit(True)),
        )
    if kind is None:
        return _Field(value=cell.cast("string"), fits=F.lit(True))
    value, fits = promised_value(cell, kind)
    return _Field(value=value, fits=fits)
