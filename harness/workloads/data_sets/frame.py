"""The records sent from a data set, in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.workloads.sending.indexes import index_frame
from streamquake.harness.workloads.sending.ranges import SendRange


def frame(
    spark: SparkSession, file: Path, columns: Iterable[str], ranges: Sequence[SendRange]
) -> DataFrame:
    """One row for each record of the ranges: `columns`, index and status. `file` is as
    `DataSet.store` wrote it."""
    sent = spark.read.parquet(literal_path(file)).join(index_frame(spark, ranges), "index")
    return sent.select(*map(quote_name, columns), "index", "status")
