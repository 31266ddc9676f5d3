"""The anomalous records of an output: the copy of a record that is wrong, and when it was written.

An identity may have several copies, of which one is right. An anomaly is attributed to the copy
that is wrong: one with values that were never sent, or the copies that were written last.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.identity_join import quote_name, same_values
from streamquake.harness.reconcile.result import Differences
from streamquake.harness.reconcile.row_hashes import ACKNOWLEDGED, UNKNOWN
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.verdict.expected_output import STAMP

CHANGED, REORDERED = "changed", "reordered"
_SENDS = "_sends"
"""How many sends of a record's identity had its values; null where none had."""


def anomalous_records(wrong: Differences, classes: Collection[str]) -> DataFrame:
    """One row for each anomalous record: identity, `what`, `lane` and `STAMP`. The more costly
    classes, changed and reordered, only where they are among `classes`."""
    shape = wrong.shape
    unknown = {name: F.lit(None).cast(kind) for name, kind in (("lane", "string"), (STAMP, "long"))}
    rows = wrong.found.where("lost > 0").select(*shape.identity, F.lit("lost").alias("what"))
    rows = rows.withColumns(unknown)
    written = [_surplus_records(wrong)]
    if CHANGED in classes:
        written.append(_changed_records(wrong))
    if REORDERED in classes and wrong.out_of_order is not None:
        written.append(_out_of_order(wrong, wrong.out_of_order))
    for present in written:
        if STAMP not in present.columns:
            present = present.withColumn(STAMP, unknown[STAMP])
        present = present.withColumn("lane", F.col(shape.lane[0]).cast("string"))
        rows = rows.unionByName(present.select(*rows.columns))
    return rows


def _surplus_records(wrong: Differences) -> DataFrame:
    """The records that are duplicated (the last copies) or invented."""
    rows = _suspects_with(wrong, "duplicated", "phantom")
    copies = Window.partitionBy(*wrong.shape.identity).orderBy(*_last_first(rows, wrong.shape))
    rows = rows.withColumn("_turn", F.row_number().over(copies))
    classes = {
        "duplicated": F.col("_turn") <= F.col("duplicated"),
        "phantom": F.col("phantom") > 0,
    }
    named = F.array(*(F.when(present, F.lit(name)) for name, present in classes.items()))
    return rows.withColumn("what", F.explode(F.array_compact(named)))


def _changed_records(wrong: Differences) -> DataFrame:
    """One record of each changed identity: the last of the copies with values that were never sent;
    without such, the last of those with values that were sent less often; else the last of all."""
    shape = wrong.shape
    names = (*shape.identity, *shape.compare)
    rows = _suspects_with(wrong, CHANGED).alias("a")
    sends = _sends_of(wrong).alias("s")
    rows = rows.join(sends, same_values(names, "a", "s"), "left").select("a.*", _SENDS)
    of_value = Window.partitionBy(*map(quote_name, names)).orderBy(*_place(rows, shape))
    copies = Window.partitionBy(*shape.identity)
    wrongness = (
        F.when(F.isnull(_SENDS), 2)
        .when(F.row_number().over(of_value) > F.col(_SENDS), 1)
        .otherwise(0)
    )
    rows = rows.withColumn("_wrongness", wrongness)
    last_first = (F.desc("_wrongness"), *_last_first(rows, shape))
    rows = rows.withColumn("_turn", F.row_number().over(copies.orderBy(*last_first)))
    return rows.where("_turn = 1").withColumn("what", F.lit(CHANGED))


def _sends_of(wrong: Differences) -> DataFrame:
    """Identity and values of the sends of changed identities, with `_SENDS`."""
    shape = wrong.shape
    changed = wrong.found.where("changed > 0").alias("f")
    sends = wrong.expected
    if shape.status:
        sends = sends.where(F.col(shape.status).isin(ACKNOWLEDGED, UNKNOWN))
    sends = sends.alias("e").join(changed, same_values(shape.identity, "e", "f"), "semi")
    columns = map(quote_name, (*shape.identity, *shape.compare))
    return sends.groupBy(*columns).agg(F.count(F.lit(1)).alias(_SENDS))


def _suspects_with(wrong: Differences, *classes: str) -> DataFrame:
    """The actual records whose identity has an anomaly of one of these classes, with its counts."""
    some = wrong.found.where(" OR ".join(f"{name} > 0" for name in classes)).alias("f")
    suspects = wrong.suspects.alias("a")
    rows = suspects.join(some, same_values(wrong.shape.identity, "a", "f"))
    return rows.select("a.*", *(f"f.{name}" for name in classes))


def _place(rows: DataFrame, shape: Shape) -> list[str]:
    """The columns that order copies by their writes; stamps do so across partitions too."""
    written = [STAMP] if STAMP in rows.columns else []
    return [*written, *reversed(shape.place)]


def _last_first(rows: DataFrame, shape: Shape) -> list[Column]:
    return [F.desc(name) for name in _place(rows, shape)]


def _out_of_order(wrong: Differences, places: DataFrame) -> DataFrame:
    """The records at the places of those that were written after a later record of their key."""
    names = list(wrong.shape.place)
    records = wrong.actual.join(places.select(*names), names, "semi")
    return records.withColumn("what", F.lit(REORDERED))
