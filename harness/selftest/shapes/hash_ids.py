"""Identities that look like hashes, beside keys that order the records."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import DataShape, data_shapes

DIGITS = 32
"""Of an MD5 in hexadecimal: 128 bits, so that no two of any number of records fall together."""


@data_shapes.register
class HashIds(DataShape):
    """32 hexadecimal digits as identity; the sequence is no part of it."""

    name = "hash_ids"
    identity = ("id",)

    def keys(self, units: int) -> int:
        return 64

    def fields(self) -> Mapping[str, Column]:
        name = F.concat_ws("|", "hashed", "unit")
        return {**super().fields(), "id": F.md5(F.encode(name, "utf-8"))}

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"id": F.substring("id", 1, DIGITS - 1)}
