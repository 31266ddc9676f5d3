"""The data of one shape: generated once, it is the source of both sides of every cell."""

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
"""A dataset has whole groups of this many units, so that every unit of a plant has its
neighbours."""
PARTITIONS = 4
OFFSET_STEP = 8
"""The distance between two offsets, so that copies fit in between."""
FAR = 1 << 40
"""Added to an offset, it moves a record behind all others of its partition."""


@dataclass(frozen=True, kw_only=True)
class PlantingDataset:
    """The records of one data shape, and their offsets in the output.

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

    def reconcile_shape(self, also: tuple[str, ...] = ()) -> Shape:
        """How to reconcile these records. `also` names classes that are judged only on request."""
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
        """The counts that must be reported if nothing is planted."""
        zero = (
            "lost",
            "duplicated",
            "phantom",
            "changed",
            "reordered",
            "unknown_arrived",
            "unknown_absent",
            "malformed",
        )
        counts: dict[str, int | None] = dict.fromkeys(zero, 0)
        if not self.shape.ordered:
            counts["reordered"] = None
        return {**counts, "expected": self.records, "actual": self.records}

    def expected(self, status: Column | None = None) -> DataFrame:
        """The expected side: every send once, acknowledged unless `status` is given."""
        return self.frame.withColumn("status", F.lit(ACKNOWLEDGED) if status is None else status)

    def actual(self, where: Column | None = None, **changed: Column) -> DataFrame:
        """The actual side: every send once, with the columns `changed` where `where` is true."""
        all_readable = {"malformed": F.lit(False), "raw": F.lit(None).cast("string")}
        frame = self.frame.withColumns({**self.shape.rewritten(), **all_readable})
        if where is not None:
            frame = frame.withColumns(
                {name: F.when(where, to).otherwise(F.col(name)) for name, to in changed.items()}
            )
        return frame


def units_of(shape: DataShape, records: int) -> int:
    """How many identities of this shape are generated for `records` records."""
    units = records // shape.weight // shape.sends
    return max(GROUP, units // GROUP * GROUP)


@contextmanager
def cached_dataset(
    spark: SparkSession, shape: DataShape, *, seed: int, records: int
) -> Iterator[PlantingDataset]:
    """A dataset that stays cached until the end of the block."""
    units = units_of(shape, records)
    with persisted(generate(spark, shape, seed=seed, units=units)) as frame:
        last = frame.groupBy("partition").agg(F.max("unit").alias("unit")).collect()
        yield PlantingDataset(
            shape=shape, frame=frame, units=units, ends=tuple(sorted(r.unit for r in last))
        )


def generate(spark: SparkSession, shape: DataShape, *, seed: int, units: int) -> DataFrame:
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
        "offset": (F.col("unit") * shape.sends + F.col("nth")) * OFFSET_STEP,
    }
    return keyed.withColumns(dict(fields)).drop("pair", "hashed", "key_number")
