"""Protobuf: values of a topic, decoded by the descriptors that `protoc` writes.

    protoc --include_imports --descriptor_set_out=order.desc order.proto

Spark's connector for Protobuf is a separate jar, so protarrow decodes messages to Arrow in Python.
The header of Confluent's wire format is a zero, the schema ID in four bytes, and the path of the
message in its file. One schema reads the values of all IDs, by the compatibility rules of Protobuf.

An enum is its number, uint64 a decimal, a Timestamp a struct like any message. A missing field
without presence is its default; a missing optional field is null.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from streamquake.harness.reconcile.reading.format import Format, formats
from streamquake.harness.reconcile.reading.partitions import Partitions
from streamquake.harness.reconcile.reading.protobuf_message import (
    ProtobufMessage,
    decoder,
    protobuf_message,
)
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, Table
from streamquake.topologies.named_files import read_bytes
from streamquake.topologies.problems import bad_input


@formats.register
class Protobuf(Format):
    """Protobuf values in topics."""

    name: ClassVar[str] = "protobuf"
    extensions: ClassVar[tuple[str, ...]] = ()
    in_topics: ClassVar[bool] = True
    takes_schema: ClassVar[bool] = True
    takes_message: ClassVar[bool] = True

    @classmethod
    def schema_text(cls, file: Path) -> str:
        return base64.encodebytes(read_bytes(file)).decode("ascii")

    @classmethod
    def fits(cls, head: bytes) -> bool:
        return False

    def check_schema(self) -> None:
        self._message()

    def read(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        names: frozenset[str],
        partitions: Partitions,
    ) -> Table:
        raise bad_input(paths[0], "Protobuf has no files of many records; it is read from topics")

    def values(
        self,
        raw: DataFrame,
        place: tuple[str, ...],
        names: frozenset[str],
        *,
        lane: tuple[str, ...],
        position: str,
    ) -> Table:
        message = self._message()
        kind = from_arrow_type(message.arrow_type).simpleString()
        framed = bool(self.required_schema().header)
        # The stubs require the kind of function, which Spark derives from its annotations.
        decode = arrow_udf(decoder(message, framed=framed), kind)  # type: ignore[call-overload]
        decoded_rows = raw.select("value", *place, decode("value").alias("it"))
        marked = decoded_rows.withColumn(MALFORMED, F.isnotnull("value") & F.isnull("it"))
        fields = tuple(field.name for field in message.arrow_type)
        frame = marked.select(
            "it.*", *place, MALFORMED, F.when(F.col(MALFORMED), F.hex("value")).alias(RAW)
        )
        return Table(
            frame=frame, columns=fields, place=place, lane=lane, position=position, costly=True
        )

    def _message(self) -> ProtobufMessage:
        """The message of the schema. Raises BadInput for descriptors that cannot be used."""
        schema = self.required_schema()
        try:
            return protobuf_message(base64.b64decode(schema.texts[""]), schema.message)
        except ValueError as error:
            raise bad_input(schema.place, str(error)) from error
