"""Long texts: a key and a value of which only the last character tells two records apart."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import DataShape, data_shapes

KEY_LENGTH, TEXT_LENGTH = 200, 1000


@data_shapes.register
class LongStrings(DataShape):
    """Keys of 200 characters with one beginning, values of 1,000 characters."""

    name = "long_strings"
    weight = 10
    compare = ("text", "checksum")

    def keys(self, units: int) -> int:
        return 64

    def key(self) -> Column:
        return F.lpad(super().key(), KEY_LENGTH, "k")

    def fields(self) -> Mapping[str, Column]:
        return {"text": F.rpad(F.hex("hashed"), TEXT_LENGTH, "é")}

    def altered(self) -> Mapping[str, Column]:
        return {"text": F.concat(F.substring("text", 1, TEXT_LENGTH - 1), F.lit("e"))}
