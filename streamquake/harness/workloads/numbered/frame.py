"""The records of the workload made inside Spark, with native expressions only.

The twin of `records.py`: the same fields from (seed, index), without a row of Python. What differs
from record to record by table (the slots of each segment) is joined from a small broadcast frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.workloads.numbered.layout import Segment
from streamquake.harness.workloads.numbered.ranges import Range
from streamquake.harness.workloads.numbered.records import AMOUNTS, EPOCH_MS, Recipe

PIECE = 1 << 15
"""Ranges are cut to this many records, so that they spread over tasks and no array is large."""
COLUMNS = ("key", "seq", "index", "event_time_ms", "amount", "payload", "checksum", "status")


def frame(spark: SparkSession, recipe: Recipe, ranges: Sequence[Range]) -> DataFrame:
    """One row per record of the ranges, with `COLUMNS`."""
    index = F.col("index")
    start = _of_segment(recipe, index, lambda segment: segment.start)
    slots = _of_segment(recipe, index, lambda segment: len(segment.slots))
    first_slots = _first_slots(recipe)
    first_slot = _of_segment(recipe, index, lambda segment: first_slots[segment.start])
    placed = (
        _indexes(spark, ranges)
        .withColumn("within", index - start)
        .withColumn("slots", slots)
        .withColumn("round", F.expr("within div slots"))
        .withColumn("slot", first_slot + F.col("within") % F.col("slots"))
        .join(F.broadcast(_slots(spark, recipe)), "slot")
        .withColumn("seq", F.col("base") + F.col("round") * F.col("per_round") + F.col("rank"))
    )
    return _with_fields(placed, recipe).select(*COLUMNS)


def _with_fields(placed: DataFrame, recipe: Recipe) -> DataFrame:
    index = F.col("index")
    numerator, denominator = recipe.event_ms
    elapsed = F.expr(f"(index * {numerator}L) div {denominator}L")
    hexed = F.lpad(F.hex("hashed"), 16, "0")
    repeats = -(-recipe.payload_bytes // 16)
    payload = F.substring(F.repeat(hexed, repeats), 1, recipe.payload_bytes)
    canonical = F.concat_ws("|", "key", "seq", "index", "event_time_ms", "amount", "payload")
    return (
        placed.withColumn("hashed", F.xxhash64(F.lit(recipe.seed).cast("bigint"), index))
        .withColumn("event_time_ms", F.lit(EPOCH_MS).cast("bigint") + elapsed)
        .withColumn("amount", F.pmod("hashed", F.lit(AMOUNTS).cast("bigint")) + 1)
        .withColumn("payload", payload)
        .withColumn("checksum", F.crc32(F.encode(canonical, "utf-8")))
    )


def _indexes(spark: SparkSession, ranges: Iterable[Range]) -> DataFrame:
    pieces = [
        (first, min(first + PIECE - 1, run.last), str(run.status))
        for run in ranges
        for first in range(run.first, run.last + 1, PIECE)
    ]
    table = pa.table(
        {
            "first": pa.array([first for first, _, _ in pieces], pa.int64()),
            "last": pa.array([last for _, last, _ in pieces], pa.int64()),
            "status": pa.array([status for _, _, status in pieces], pa.string()),
        }
    )
    return spark.createDataFrame(table).select(
        F.explode(F.sequence("first", "last")).alias("index"), "status"
    )


def _slots(spark: SparkSession, recipe: Recipe) -> DataFrame:
    slots = [slot for segment in recipe.segments for slot in segment.slots]
    table = pa.table(
        {
            "slot": pa.array(range(len(slots)), pa.int64()),
            "key": pa.array([f"k-{slot.key:05d}" for slot in slots], pa.string()),
            "base": pa.array([slot.base for slot in slots], pa.int64()),
            "per_round": pa.array([slot.per_round for slot in slots], pa.int64()),
            "rank": pa.array([slot.rank for slot in slots], pa.int64()),
        }
    )
    return spark.createDataFrame(table)


def _first_slots(recipe: Recipe) -> dict[int, int]:
    """Where each segment's slots begin in the joined table, by the segment's first record."""
    first, begins = 0, {}
    for segment in recipe.segments:
        begins[segment.start] = first
        first += len(segment.slots)
    return begins


def _of_segment(recipe: Recipe, index: Column, value: Callable[[Segment], int]) -> Column:
    """A whole number that depends on the segment a record lies in."""
    *_, last = recipe.segments
    chosen = F.lit(value(last)).cast("bigint")
    for segment in reversed(recipe.segments[:-1]):
        here = F.lit(value(segment)).cast("bigint")
        chosen = F.when(index < segment.end, here).otherwise(chosen)
    return chosen
