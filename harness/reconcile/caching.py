"""Frames whose rows are kept while they are used more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from streamquake.harness.reconcile.spark_session import runs_here


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Persist a frame while the block runs, in memory and, where that is too small, on disk."""
    frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield frame
    finally:
        frame.unpersist()


@contextmanager
def materialized(frame: DataFrame) -> Iterator[DataFrame]:
    """Compute a frame now, and keep its rows without the plan that made them while the block runs.

    With each query on a persisted frame, Spark analyses, compares and prints its plan again, and
    the plans of the frames below it: half of the CPU time where few records differ. Where an
    executor may be lost, the frame is persisted instead: rows without a plan cannot be made again.
    """
    if not runs_here(frame.sparkSession):
        with persisted(frame) as kept:
            yield kept
        return
    rows: Any = frame.localCheckpoint()
    try:
        yield rows
    finally:
        rows._jdf.queryExecution().logical().rdd().unpersist(False)
