"""The schema to read Parquet files by: one for all files, and without Spark's own metadata.

Spark writes metadata of columns into the footer of a file, and applies it when it reads: a
collation by which `a` equals `A`, a length up to which text is padded, a default for a missing
field, a class of Python to import. This metadata is not in the data.

Spark merges files with different columns, but rejects a column that is a 32-bit whole number in one
file and a 64-bit one in another, although it can read both as the wider type. Writers that choose a
type by the values of each file, such as pandas, write such files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
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

from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.problems import BadInput, Problem

NARROW_TO_WIDE: Sequence[Sequence[type[DataType]]] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)


SPECIAL_TEXT = re.compile(r"(?:var)?char\([0-9]+\)|string collate .*")
"""Types of text that Spark compares or pads in a special way."""


def read_without_metadata(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """Read Parquet files by the types of their columns alone."""
    frame = reader.parquet(*paths)
    # JSON, since a schema in Python would import the classes that it names.
    schema = json.loads(frame._jdf.schema().json())
    plain = _without_metadata(schema)
    return frame if plain == schema else reader.schema(StructType.fromJson(plain)).parquet(*paths)


def _without_metadata(kind: Any) -> Any:
    """A type of Spark, as JSON, without its metadata."""
    if isinstance(kind, str):
        return "string" if SPECIAL_TEXT.fullmatch(kind) else kind
    if kind["type"] == "udt":
        return _without_metadata(kind["sqlType"])
    if kind["type"] == "struct":
        fields = [
            {**field, "type": _without_metadata(field["type"]), "metadata": {}}
            for field in kind["fields"]
        ]
        return {**kind, "fields": fields}
    parts = ("elementType", "keyType", "valueType")
    return {name: _without_metadata(part) if name in parts else part for name, part in kind.items()}


class IncompatibleTypes(StreamquakeError):
    """Two types without a common wider type."""

    kind = ErrorKind.BAD_INPUT


@contextmanager
def footer_schema(spark: SparkSession, path: str) -> Iterator[Any]:
    """The schema of a file, an org.apache.parquet.schema.MessageType. Its path is escaped for
    Spark."""
    context: Any = spark.sparkContext
    jvm, settings = context._jvm, context._jsc.hadoopConfiguration()
    plain = jvm.org.apache.hadoop.fs.Path(re.sub(r"\\(.)", r"\1", path))
    file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(plain, settings)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        yield reader.getFooter().getFileMetaData().getSchema()
    finally:
        reader.close()


def widened_schema(spark: SparkSession, paths: Iterable[str]) -> StructType:
    """A schema that can read all these files. Raises BadInput where there is none."""
    merged = StructType()
    schemas: set[str] = set()
    for path in paths:
        with footer_schema(spark, path) as message:
            if str(message) in schemas:
                continue
            schemas.add(str(message))
            schema = _spark_schema(spark, message)
        try:
            merged = _merge(merged, schema)
        except IncompatibleTypes as error:
            message = f"the Parquet files of one side have {error}; write it with one type"
            raise BadInput([Problem(file=path, message=message)]) from error
    return merged


def _spark_schema(spark: SparkSession, message: Any) -> StructType:
    jvm: Any = spark.sparkContext._jvm
    parquet = jvm.org.apache.spark.sql.execution.datasources.parquet
    converter = parquet.ParquetToSparkSchemaConverter(spark._jsparkSession.sessionState().conf())
    return StructType.fromJson(json.loads(converter.convert(message).json()))


def _merge(one: StructType, other: StructType) -> StructType:
    """The fields of both, by name. Raises IncompatibleTypes."""
    fields = {field.name: field.dataType for field in one}
    for field in other:
        before = fields.get(field.name)
        fields[field.name] = (
            field.dataType if before is None else _wider_type(before, field.dataType, field.name)
        )
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def _wider_type(one: DataType, other: DataType, name: str) -> DataType:
    if one == other:
        return one
    if isinstance(one, StructType) and isinstance(other, StructType):
        return _merge(one, other)
    for kinds in NARROW_TO_WIDE:
        if type(one) in kinds and type(other) in kinds:
            return max(one, other, key=lambda kind: kinds.index(type(kind)))
    types = f'"{one.simpleString().upper()}" and "{other.simpleString().upper()}"'
    raise IncompatibleTypes(f"one column, `{name}`, with {types}")
