"""Raw records brought to the columns of the expected side.

Values are JSON; a field must have its column's type exactly, so that a text or a fraction is no
whole number. What does not parse is marked and has only nulls: it is counted and shown, and as
nobody sent it, it is a phantom. Places keep a leading underscore, apart from the job's own names.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

KAFKA_LANE, KAFKA_POSITION = ("_partition",), "_offset"
FILE_LANE, FILE_POSITION = ("_file",), "_position"
MALFORMED, RAW = "_malformed", "_value"
_CORRUPT = "_corrupt"


def parsed(
    raw: DataFrame, like: DataFrame, columns: Sequence[str], place: Sequence[str]
) -> DataFrame:
    """`columns` of the values with the types they have in `like`, and `place`, `MALFORMED`,
    `RAW`."""
    fields = [StructField(name, like.schema[name].dataType) for name in columns]
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    options = {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}
    placed = raw.select(
        F.from_json("value", schema, options).alias("it"),
        F.col("value").alias(RAW),
        *(F.col(name.removeprefix("_")).alias(name) for name in place),
    )
    empty = F.isnull(F.coalesce(*(F.col(f"it.`{name}`").cast("string") for name in columns)))
    marked = placed.withColumn(MALFORMED, F.isnotnull(f"it.{_CORRUPT}") | empty)
    values = (F.when(~F.col(MALFORMED), F.col(f"it.`{name}`")).alias(name) for name in columns)
    return marked.select(*values, *place, MALFORMED, RAW)
