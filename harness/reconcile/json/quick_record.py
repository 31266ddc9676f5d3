"""Reads the lines that have the form of the first ones, in a quick way that is certain to be exact.

On this machine Arrow reads them (`plain_lines.py`). The workers of another master may lack its
package, so Spark's own functions read them there, with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import (
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from streamquake.harness.reconcile.json.json_record import (
    STRICT,
    LineForm,
    evaluated_once,
    rewritten_record,
)
from streamquake.harness.reconcile.json.plain_lines import (
    IS_PLAIN,
    REWRITTEN,
    plain_reader,
    schema_of,
)
from streamquake.harness.reconcile.spark_session import runs_here

TYPES: Mapping[str, DataType] = {
    "bigint": LongType(),
    "boolean": BooleanType(),
    "string": StringType(),
    "variant": VariantType(),
}
"""The kinds of a field."""
QUICK = "__quick"
"""The column of the fields that were read."""
_CORRUPT = "_corrupt"


@dataclass(frozen=True, kw_only=True)
class QuickRecords:
    """`frame` has the lines and the columns that the others are made of."""

    frame: DataFrame
    plain: Column
    """Whether a line was read. All others are left to another reader."""
    fields: Mapping[str, Column]
    """The value of each field of a line that was read."""
    rewritten: Column
    """Each other line as one record that Spark reads exactly; null where it is malformed. Null
    everywhere unless it was asked for."""


def quick_records(
    lines: DataFrame, value: str, form: LineForm, kinds: Mapping[str, str], *, rewrite: bool = False
) -> QuickRecords:
    """Read the fields `kinds` (field -> a kind of `TYPES`) of the lines in the column `value`. A
    line is read only where each of them that is no variant is present and of its kind."""
    read = _by_arrow if runs_here(lines.sparkSession) else _by_spark
    return read(lines, value, form, kinds, rewrite)


def _by_arrow(
    lines: DataFrame, value: str, form: LineForm, kinds: Mapping[str, str], rewrite: bool
) -> QuickRecords:
    reader: Any = arrow_udf(plain_reader(form.variants, kinds, rewrite), schema_of(kinds, rewrite))  # type: ignore[call-overload]
    frame = lines.withColumn(QUICK, evaluated_once(reader)(F.col(value).cast("binary")))
    quick = F.col(QUICK)
    plain = quick.getField(IS_PLAIN)
    fields = {
        name: _typed(F.when(plain, quick.getField(str(number))), kind)
        for number, (name, kind) in enumerate(kinds.items())
    }
    rewritten = quick.getField(REWRITTEN) if rewrite else F.lit(None).cast("string")
    return QuickRecords(frame=frame, plain=plain, fields=fields, rewritten=rewritten)


def _typed(field: Column, kind: str) -> Column:
    return F.parse_json(field) if kind == "variant" else field


def _by_spark(
    lines: DataFrame, value: str, form: LineForm, kinds: Mapping[str, str], rewrite: bool
) -> QuickRecords:
    schema = StructType(
        [
            *(StructField(name, TYPES[kind]) for name, kind in kinds.items()),
            StructField(_CORRUPT, StringType()),
        ]
    )
    options = {"columnNameOfCorruptRecord": _CORRUPT, **STRICT}
    required = {name: kind for name, kind in kinds.items() if kind != "variant"}
    fits = form.plain(F.col(value), required)
    marked = lines.withColumns(
        {"__fits": fits, QUICK: F.from_json(F.when(fits, F.col(value)), schema, options)}
    )
    field = F.col(QUICK).getField
    # A whole number of 19 digits may be too large.
    conditions = [F.isnull(field(_CORRUPT)), *(F.isnotnull(field(name)) for name in required)]
    frame = marked.withColumn(
        "__plain", F.coalesce(reduce(and_, conditions, F.col("__fits")), F.lit(False))
    )
    plain = F.col("__plain")
    return QuickRecords(
        frame=frame,
        plain=plain,
        fields={name: F.when(plain, field(name)) for name in kinds},
        rewritten=rewritten_record(F.when(~plain, F.col(value).cast("binary")), kinds)
        if rewrite
        else F.lit(None).cast("string"),
    )
