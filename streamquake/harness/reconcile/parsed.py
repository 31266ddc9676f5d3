"""Raw records brought to the columns of the expected side.

Values are JSON, in a shape of their own where that is told (`own_shape.py`). A field must have its
column's type exactly, so that a text or a fraction is no whole number. What does not parse is
marked and has only nulls: it is counted and shown, and as nobody sent it, it is a phantom. Places
keep a leading underscore, apart from the job's own names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField

from streamquake.harness.reconcile.own_shape import own_shape

KAFKA_LANE, KAFKA_POSITION = ("_partition",), "_offset"
FILE_LANE, FILE_POSITION = ("_file",), "_position"
MALFORMED, RAW = "_malformed", "_value"
_CORRUPT = "_corrupt"
PLAIN: Mapping[str, str] = {}
"""Each column is the field of its name."""


def parsed(
    raw: DataFrame,
    like: DataFrame,
    columns: Sequence[str],
    place: Sequence[str],
    how: Mapping[str, str] = PLAIN,
) -> DataFrame:
    """`columns` of the values with the types they have in `like`, and `place`, `MALFORMED`,
    `RAW`. `how` has an expression for each column that is not a field of its name; these may name
    what `raw` says of the record's place too. Raises BadInput."""
    around = {f"_{name}": F.col(name) for name in raw.columns if name != "value"}
    shape = own_shape(like, columns, how, around)
    schema = shape.fields.add(StructField(_CORRUPT, StringType()))
    options = {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}
    read = raw.select(
        F.from_json("value", schema, options).alias("it"),
        F.col("value").alias(RAW),
        *(column.alias(name) for name, column in around.items()),
    ).select("it.*", RAW, *around)
    values = shape.columns(read, like)
    empty = F.isnull(F.coalesce(*(value.cast("string") for value in values.values())))
    marked = read.withColumn(MALFORMED, F.isnotnull(_CORRUPT) | empty)
    readable = (F.when(~F.col(MALFORMED), value).alias(name) for name, value in values.items())
    return marked.select(*readable, *place, MALFORMED, RAW)
