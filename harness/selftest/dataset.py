"""The data of one shape, made once, from which every cell takes its two sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.row_hashes import ACKNOWLEDGED
from streamquake.harness.reconcile.shape import UNMATCHED, Shape
from streamquake.harness.selftest.data_shape import DataShape

GROUP = 8
"""Units come in full groups of this size, so that a plant may count on its neighbours."""
PARTITIONS = 4
ROOM = 8
"""Offsets lie this far apart, so that copies fit in between."""
FAR = 1 << 40
"""Beyond all offsets: the place of records that arrived long after their time."""


@dataclass(frozen=True, kw_only=True)
class PlantingDataset:
    """The records of one data shape, and their places in the output.

    `frame` has a row for each send: `unit`, `nth`, `key`, `seq`, the shape's fields, `checksum`,
    and `partition` and `offset` of the copy in the output.
    """

    shape: DataShape
    frame: DataFrame
    units: int
    ends: tuple[int, ...]
    """The last unit of each partition, ascending."""

    @property
    def records(self) -> int:
        return self.units * self.shape.sends

    def judged_by(self, also: tuple[str, ...] = ()) -> Shape:
        """How these records are to be judged. `also` are classes that are judged only on demand."""
        return Shape(
            identity=self.shape.identity,
            compare=self.shape.compare,
            sequence="seq" if self.shape.ordered else None,
            key=("key",) if self.shape.ordered else (),
            status="status",
            lane=("partition",),
            position="offset",
            malformed="malformed",
            raw="raw",
            partition="partition",
            expected_partition="partition",
            also=also,
            retracts="retracts" if UNMATCHED in also else None,
        )

    def clean_counts(self) -> dict[str, int | None]:
        """What must be reported when nothing is planted."""
        none = (
            "lost",
            "duplicated",
            "phantom",
            "changed",
            "reordered",
            "unknown_arrived",
            "unknown_absent",
            "malformed",
        )
        counts: dict[str, int | None] = dict.fromkeys(none, 0)
        if not self.shape.ordered:
            counts["reordered"] = None
        return {**counts, "expected": self.records, "actual": self.records}

    def sent(self, status: Column | None = None) -> DataFrame:
        """The expected side; all sends are acknowledged unless `status` is given."""
        return self.frame.withColumn("status", F.lit(ACKNOWLEDGED) if status is None else status)

    def seen(self, where: Column | None = None, **changed: Column) -> DataFrame:
        """The actual side: every send once, with the columns `changed` where `where` is true."""
        unread = {"malformed": F.lit(False), "raw": F.lit(None).cast("string")}
        frame = self.frame.withColumns({**self.shape.rewritten(), **unread})
        if where is not None:
            frame = frame.withColumns(
                {name: F.when(where, to).otherwise(F.col(name)) for name, to in changed.items()}
            )
        return frame


def units_of(shape: DataShape, records: int) -> int:
    """How many identities of this shape are made for so many `records`."""
    units = records // shape.weight // shape.sends
    return max(GROUP, units // GROUP * GROUP)


@contextmanager
def stored(
    spark: SparkSession, shape: DataShape, *, seed: int, records: int
) -> Iterator[PlantingDataset]:
    """A dataset that is cached while the block runs."""
    units = units_of(shape, records)
    with persisted(made(spark, shape, seed=seed, units=units)) as frame:
        last = frame.groupBy("partition").agg(F.max("unit").alias("unit")).collect()
        yield PlantingDataset(
            shape=shape, frame=frame, units=units, ends=tuple(sorted(r.unit for r in last))
        )


def made(spark: SparkSession, shape: DataShape, *, seed: int, units: int) -> DataFrame:
    """The records of a shape, as native expressions of (seed, unit, nth)."""
    numbered = spark.range(units * shape.sends).select(
        F.expr(f"id div {shape.sends}").alias("unit"), (F.col("id") % shape.sends).alias("nth")
    )
    hashed = F.xxhash64(F.lit(seed).cast("bigint"), "unit")
    keyed = numbered.withColumns({"pair": F.expr("unit div 2"), "hashed": hashed}).withColumns(
        {
            "key_number": shape.key_number(units).cast("bigint"),
            "seq": shape.sequence(units).cast("bigint"),
        }
    )
    fields: Mapping[str, Column] = {
        "key": shape.key(),
        **shape.fields(),
        "checksum": F.crc32(F.encode(F.concat_ws("|", "hashed", "unit"), "utf-8")),
        "partition": (F.col("key_number") % PARTITIONS).cast("int"),
        "offset": (F.col("unit") * shape.sends + F.col("nth")) * ROOM,
    }
    return keyed.withColumns(dict(fields)).drop("pair", "hashed", "key_number")
