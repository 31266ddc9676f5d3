"""What stands in an output in the end, where its records take back or replace earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.retractions import left_over, taking_back
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.reconcile.upserts import last_of_each


@contextmanager
def standing(actual: DataFrame, shape: Shape) -> Iterator[DataFrame]:
    """The records that were not retracted, replaced or deleted; all of them where none can be."""
    if shape.retracts is not None:
        stands = left_over(actual, shape).where(~taking_back(shape))
    elif shape.deletes is not None:
        stands = last_of_each(actual, shape)
    else:
        yield actual
        return
    with persisted(stands) as rows:
        yield rows
