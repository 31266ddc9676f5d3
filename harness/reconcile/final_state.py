"""The final state of an output whose records retract or replace earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.retractions import is_retraction, unmatched_records
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.reconcile.upserts import last_versions


@contextmanager
def final_records(actual: DataFrame, shape: Shape) -> Iterator[DataFrame]:
    """The records that were not retracted, replaced or deleted; all records of a plain output."""
    if shape.retracts is not None:
        final = unmatched_records(actual, shape).where(~is_retraction(shape))
    elif shape.deletes is not None:
        final = last_versions(actual, shape)
    else:
        yield actual
        return
    with persisted(final) as rows:
        yield rows
