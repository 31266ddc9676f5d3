"""Whole numbers without gaps as identities, and no order promised."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import DataShape, data_shapes


@data_shapes.register
class DenseIds(DataShape):
    """Identities 0, 1, 2, ...; without a sequence, so that the order must not be judged."""

    name = "dense_ids"
    ordered = False
    identity = ("id",)

    def keys(self, units: int) -> int:
        return 64

    def fields(self) -> Mapping[str, Column]:
        return {**super().fields(), "id": F.col("unit")}

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"id": -1 - F.col("id")}
