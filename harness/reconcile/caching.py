"""Frames that are persisted while they are used more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Persist a frame while the block runs, in memory and, where that is too small, on disk."""
    frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield frame
    finally:
        frame.unpersist()
