"""Retractions: records that withdraw an earlier one, as in the changelog of a query.

An update is two records: the retraction of the old row, and the new row. The final state is the
rows that were inserted more often than retracted. The order of the two is not checked: there is no
order between partitions, and a key may move to another partition when a job is restored.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.shape import Shape


def unmatched_records(actual: DataFrame, shape: Shape) -> DataFrame:
    """The records without a counterpart of equal identity and compared values: the last insertions,
    or the last retractions. All unreadable records remain."""
    malformed = is_malformed(shape)
    retracts = is_retraction(shape)
    equal = Window.partitionBy(*shape.identity, *map(quote_name, shape.compare), malformed)
    same_kind = Window.partitionBy(
        *shape.identity, *map(quote_name, shape.compare), malformed, retracts
    )
    last_first = same_kind.orderBy(
        *(F.desc(name) for name in (*shape.place, *shape.displayed_place))
    )
    balance = F.sum(F.when(retracts, -1).otherwise(1)).over(equal)
    surplus = F.when(retracts, -balance).otherwise(balance)
    marked = actual.withColumns({"_copy": F.row_number().over(last_first), "_surplus": surplus})
    return marked.where(malformed | (F.col("_copy") <= F.col("_surplus"))).drop("_copy", "_surplus")


def is_retraction(shape: Shape) -> Column:
    """Whether a record is a retraction. An unreadable record is none."""
    assert shape.retracts is not None
    return ~is_malformed(shape) & F.coalesce(F.col(shape.retracts), F.lit(False))


def is_malformed(shape: Shape) -> Column:
    """Whether a record could not be read."""
    marks = (F.col(name) for name in (shape.unreadable, shape.malformed) if name is not None)
    return reduce(or_, marks, F.lit(False))
