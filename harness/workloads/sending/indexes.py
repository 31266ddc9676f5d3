"""The indexes of the records of a load, in Spark."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.workloads.sending.ranges import SendRange

PIECE_RECORDS = 1 << 15
"""Ranges are split into pieces of this many records, so that tasks share them and arrays stay
small."""


def index_frame(spark: SparkSession, ranges: Iterable[SendRange]) -> DataFrame:
    """One row for each record of the ranges: its index, and the status of its send."""
    pieces = [
        (first, min(first + PIECE_RECORDS - 1, sent.last), str(sent.status))
        for sent in ranges
        for first in range(sent.first, sent.last + 1, PIECE_RECORDS)
    ]
    table = pa.table(
        {
            "first": pa.array([first for first, _, _ in pieces], pa.int64()),
            "last": pa.array([last for _, last, _ in pieces], pa.int64()),
            "status": pa.array([status for _, _, status in pieces], pa.string()),
        }
    )
    return spark.createDataFrame(table).select(
        F.explode(F.sequence("first", "last")).alias("index"), "status"
    )
