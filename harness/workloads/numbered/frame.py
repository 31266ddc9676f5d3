"""The records of the workload generated inside Spark, with native expressions only.

The counterpart of `records.py`: the same fields from (seed, workload changes, index), without a
Python row per record. Values that depend on a table (the slots of each segment) are joined from a
small broadcast frame. Poison records have no row: they are expected nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.workloads.numbered.generation_parameters import (
    CHANCES,
    COPIES_BIT,
    JITTER_BIT,
    LARGE_BIT,
    LATE_BIT,
    GenerationParameters,
)
from streamquake.harness.workloads.numbered.layout import KeySegment
from streamquake.harness.workloads.numbered.records import AMOUNTS, EPOCH_MS, LoadDefinition
from streamquake.harness.workloads.sending.indexes import index_frame
from streamquake.harness.workloads.sending.ranges import SendRange

COLUMNS = (
    "key",
    "seq",
    "index",
    "event_time_ms",
    "amount",
    "payload",
    "checksum",
    "copies",
    "status",
)


def frame(
    spark: SparkSession, definition: LoadDefinition, ranges: Sequence[SendRange]
) -> DataFrame:
    """One row per record of the ranges, with `COLUMNS`."""
    index = F.col("index")
    start = _of_segment(definition, index, lambda segment: segment.start)
    slots = _of_segment(definition, index, lambda segment: len(segment.slots))
    first_slots = _first_slots(definition)
    first_slot = _of_segment(definition, index, lambda segment: first_slots[segment.start])
    placed = (
        index_frame(spark, ranges)
        .withColumn("within", index - start)
        .withColumn("slots", slots)
        .withColumn("round", F.expr("within div slots"))
        .withColumn("slot", first_slot + F.col("within") % F.col("slots"))
        .join(F.broadcast(_slots(spark, definition)), "slot")
        .withColumn("seq", F.col("base") + F.col("round") * F.col("per_round") + F.col("rank"))
    )
    return _with_fields(placed, definition).select(*COLUMNS)


def _with_fields(placed: DataFrame, definition: LoadDefinition) -> DataFrame:
    index = F.col("index")
    numerator, denominator = definition.event_ms
    elapsed = F.expr(f"(index * {numerator}L) div {denominator}L")
    undisturbed_ms = F.lit(EPOCH_MS).cast("bigint") + elapsed
    canonical = F.concat_ws("|", "key", "seq", "index", "event_time_ms", "amount", "payload")
    return (
        placed.where(
            index >= _of_parameters(definition, lambda parameters: parameters.poison_until)
        )
        .withColumn("hashed", F.xxhash64(F.lit(definition.seed).cast("bigint"), index))
        .withColumn("event_time_ms", undisturbed_ms - _behind_ms(definition))
        .withColumn("amount", F.pmod("hashed", F.lit(AMOUNTS).cast("bigint")) + 1)
        .withColumn("hexed", F.lpad(F.hex("hashed"), 16, "0"))
        .withColumn("size", _size(definition).cast("int"))
        .withColumn("payload", F.expr("substring(repeat(hexed, (size + 15) div 16), 1, size)"))
        .withColumn("checksum", F.crc32(F.encode(canonical, "utf-8")))
        .withColumn("copies", _copies(definition))
    )


def _size(definition: LoadDefinition) -> Column:
    """The counterpart of `GenerationParameters.size`."""
    large = _bits(LARGE_BIT) < _of_parameters(
        definition, lambda parameters: parameters.large_chance
    )
    return F.when(
        large, _of_parameters(definition, lambda parameters: parameters.large_bytes)
    ).otherwise(_of_parameters(definition, lambda parameters: parameters.payload_bytes))


def _behind_ms(definition: LoadDefinition) -> Column:
    """The counterpart of `GenerationParameters.behind_ms`."""
    spread = _bits(JITTER_BIT) * _of_parameters(
        definition, lambda parameters: parameters.jitter_ms + 1
    )
    jitter = F.shiftright(spread, CHANCES.bit_length() - 1)
    late = _bits(LATE_BIT) < _of_parameters(definition, lambda parameters: parameters.late_chance)
    return jitter + F.when(
        late, _of_parameters(definition, lambda parameters: parameters.late_ms)
    ).otherwise(0)


def _copies(definition: LoadDefinition) -> Column:
    """The counterpart of `GenerationParameters.copies_of`."""
    is_copied = _bits(COPIES_BIT) < _of_parameters(
        definition, lambda parameters: parameters.copies_chance
    )
    return F.when(
        is_copied, _of_parameters(definition, lambda parameters: parameters.copies)
    ).otherwise(1)


def _bits(lowest: int) -> Column:
    """The counterpart of `bits`."""
    return F.shiftrightunsigned("hashed", lowest).bitwiseAND(F.lit(CHANCES - 1).cast("bigint"))


def _slots(spark: SparkSession, definition: LoadDefinition) -> DataFrame:
    slots = [slot for segment in definition.segments for slot in segment.slots]
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


def _first_slots(definition: LoadDefinition) -> dict[int, int]:
    """First record of a segment -> number of its first slot in the joined table."""
    slot, first_slots = 0, {}
    for segment in definition.segments:
        first_slots[segment.start] = slot
        slot += len(segment.slots)
    return first_slots


def _of_parameters(
    definition: LoadDefinition, value: Callable[[GenerationParameters], int]
) -> Column:
    """An integer that depends on the generation parameters of a record."""
    return _of_segment(definition, F.col("index"), lambda segment: value(segment.generation))


def _of_segment(
    definition: LoadDefinition, index: Column, value: Callable[[KeySegment], int]
) -> Column:
    """An integer that depends on the segment of a record."""
    *_, last = definition.segments
    column, following = F.lit(value(last)).cast("bigint"), value(last)
    for segment in reversed(definition.segments[:-1]):
        if (own := value(segment)) != following:
            column = F.when(index < segment.end, F.lit(own).cast("bigint")).otherwise(column)
            following = own
    return column
