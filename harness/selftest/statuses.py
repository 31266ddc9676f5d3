"""Status columns of sends that are not all acknowledged."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.reconcile.row_hashes import ACKNOWLEDGED, FAILED, UNKNOWN


def rejected_status(where: Column) -> Column:
    """A status column: failed where `where` is true, otherwise acknowledged."""
    return F.when(where, FAILED).otherwise(ACKNOWLEDGED)


def unknown_status(where: Column) -> Column:
    """A status column: unknown where `where` is true, otherwise acknowledged."""
    return F.when(where, UNKNOWN).otherwise(ACKNOWLEDGED)
