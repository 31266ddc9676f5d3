"""The status of sends that are not acknowledged."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.reconcile.row_hashes import ACKNOWLEDGED, FAILED, UNKNOWN


def refused(where: Column) -> Column:
    """The status column of sends that were certainly refused where `where` is true."""
    return F.when(where, FAILED).otherwise(ACKNOWLEDGED)


def unknown(where: Column) -> Column:
    """The status column of sends of unknown result where `where` is true."""
    return F.when(where, UNKNOWN).otherwise(ACKNOWLEDGED)
