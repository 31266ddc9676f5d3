"""Order: records that come after one with a higher sequence, per key and lane.

Extra copies would look like steps back and phantoms have no place in any order, so both are taken
out first; when the drill found neither, nothing is searched for.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.shape import Shape


def steps_back(actual: DataFrame, shape: Shape, found: DataFrame | None) -> DataFrame:
    """The reordered records: identity, place, and `before`, the sequence just before them.

    `found` are the anomalies of the drill, or None for a clean digest.
    """
    assert shape.sequence is not None
    assert shape.position is not None
    kept = actual if found is None else _once(actual, shape, found)
    stream = Window.partitionBy(*shape.key, *shape.lane).orderBy(shape.position)
    names = dict.fromkeys((*shape.identity, *shape.key, shape.sequence, *shape.place))
    return (
        kept.select(*names)
        .withColumn("before", F.lag(shape.sequence).over(stream))
        .where(F.col("before") > F.col(shape.sequence))
    )


def _once(actual: DataFrame, shape: Shape, found: DataFrame) -> DataFrame:
    """Without phantoms, and with only the first copy of each record."""
    identity = list(shape.identity)
    same = " AND ".join(f"a.`{name}` <=> f.`{name}`" for name in identity)
    odd = found.where("phantom > 0 OR duplicated > 0").select(*identity, "phantom")
    marked = actual.alias("a").join(odd.alias("f"), F.expr(same), "left")
    copies = Window.partitionBy(*(f"a.{name}" for name in identity)).orderBy(
        *(f"a.{name}" for name in shape.place)
    )
    first = marked.where("f.phantom = 0").withColumn("copy", F.row_number().over(copies))
    untouched = marked.where("f.phantom IS NULL").select("a.*")
    return untouched.unionByName(first.where("copy = 1").select("a.*"))
