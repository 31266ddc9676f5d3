"""Frames that are persisted while they are used more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Persist a frame while the block runs, in memory and, where that is too small, on disk."""
    # Importing pyspark takes a third of a second; a caller with a frame has imported it already.
    from pyspark import StorageLevel

    frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield frame
    finally:
        frame.unpersist()
