"""The exchange of two neighbours of one key."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import OFFSET_STEP, PlantingDataset


def exchanged_offset(dataset: PlantingDataset) -> Column:
    """The offset of the other unit of a record's pair."""
    step = dataset.shape.sends * OFFSET_STEP
    return F.col("offset") + F.when(F.col("unit") % 2 == 0, F.lit(step)).otherwise(-step)
