"""One schema for Parquet files that were written with several.

Spark merges files with different columns, but refuses a column that is a 32-bit whole number in one
file and a 64-bit one in another, though it reads both as the wider. Such files come from writers
that choose a type by the values of each file, as pandas does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from streamquake.topologies.problems import BadInput, Problem

NARROW_TO_WIDE: Sequence[Sequence[type[DataType]]] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)


class Unlike(Exception):
    """Two types that have no type in common which holds both."""


@contextmanager
def footer(spark: SparkSession, path: str) -> Iterator[Any]:
    """The message type (org.apache.parquet.schema.MessageType) of a file, as Spark takes paths."""
    context: Any = spark.sparkContext
    jvm, settings = context._jvm, context._jsc.hadoopConfiguration()
    plain = jvm.org.apache.hadoop.fs.Path(re.sub(r"\\(.)", r"\1", path))
    file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(plain, settings)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        yield reader.getFooter().getFileMetaData().getSchema()
    finally:
        reader.close()


def widened(spark: SparkSession, paths: Iterable[str]) -> StructType:
    """A schema by which all of some files can be read. Raises BadInput where there is none."""
    whole = StructType()
    seen: set[str] = set()
    for path in paths:
        with footer(spark, path) as message:
            if str(message) in seen:
                continue
            seen.add(str(message))
            schema = _of_spark(spark, message)
        try:
            whole = _merged(whole, schema)
        except Unlike as error:
            message = f"the Parquet files of one side have {error}; write it with one type"
            raise BadInput([Problem(file=path, message=message)]) from error
    return whole


def _of_spark(spark: SparkSession, message: Any) -> StructType:
    jvm: Any = spark.sparkContext._jvm
    parquet = jvm.org.apache.spark.sql.execution.datasources.parquet
    converter = parquet.ParquetToSparkSchemaConverter(spark._jsparkSession.sessionState().conf())
    return StructType.fromJson(json.loads(converter.convert(message).json()))


def _merged(one: StructType, other: StructType) -> StructType:
    """The fields of both, by name. Raises Unlike."""
    fields = {field.name: field.dataType for field in one}
    for field in other:
        before = fields.get(field.name)
        fields[field.name] = (
            field.dataType if before is None else _wider(before, field.dataType, field.name)
        )
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def _wider(one: DataType, other: DataType, name: str) -> DataType:
    if one == other:
        return one
    if isinstance(one, StructType) and isinstance(other, StructType):
        return _merged(one, other)
    for kinds in NARROW_TO_WIDE:
        if type(one) in kinds and type(other) in kinds:
            return max(one, other, key=lambda kind: kinds.index(type(kind)))
    types = f'"{one.simpleString().upper()}" and "{other.simpleString().upper()}"'
    raise Unlike(f"one column, `{name}`, with {types}")
