"""Retractions: records that take back what another one said, as the changelog of a query has them.

An update comes as two records, the old one taken back and the new one. What stands in the end is
what was said more often than it was taken back. Which of the two came first is not looked at:
between partitions there is no order, and a key may move to another one when a job is restored.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.shape import Shape


def unmatched_records(actual: DataFrame, shape: Shape) -> DataFrame:
    """Of equal records, by identity and compared values, those without a counterpart: the last of
    what was said, or of what takes back. Records that could not be read are all left."""
    spoilt = is_malformed(shape)
    takes = is_retraction(shape)
    equal = Window.partitionBy(*shape.identity, *map(quote_name, shape.compare), spoilt)
    alike = Window.partitionBy(*shape.identity, *map(quote_name, shape.compare), spoilt, takes)
    last_first = alike.orderBy(*(F.desc(name) for name in (*shape.place, *shape.shown)))
    balance = F.sum(F.when(takes, -1).otherwise(1)).over(equal)
    surplus = F.when(takes, -balance).otherwise(balance)
    marked = actual.withColumns({"_turn": F.row_number().over(last_first), "_surplus": surplus})
    return marked.where(spoilt | (F.col("_turn") <= F.col("_surplus"))).drop("_turn", "_surplus")


def is_retraction(shape: Shape) -> Column:
    """Whether a record takes another one back. One that could not be read does not."""
    assert shape.retracts is not None
    return ~is_malformed(shape) & F.coalesce(F.col(shape.retracts), F.lit(False))


def is_malformed(shape: Shape) -> Column:
    """Whether a record could not be read."""
    marks = (F.col(name) for name in (shape.unread, shape.malformed) if name is not None)
    return reduce(or_, marks, F.lit(False))
