"""How long records took from being sent to being read: by a reader of everything that is written,
and by one of committed records alone.

The events of the load give the time of a send: records between two events count as sent evenly in
that time, and a few hundredths of a second late, since an event follows the acknowledgement. The
broker's stamp is the time of the write. The samples of each partition's last stable offset give the
time from which a record could be read as committed: it is between the last sample that still hid
the record and the first one that did not, and the midpoint is the unbiased estimate. Across a hole
of the samples the midpoint proves nothing: the hole's start is the earliest possible time, and its
end the observed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reading.promised_columns import parse_records
from streamquake.harness.verdict.evidence.append_times import AppendedRecords
from streamquake.harness.verdict.evidence.sent_times import SentRange
from streamquake.reports.record.metrics import HOLE_S, Samples

EARLY_MS = 1000
"""The stamp of a record that was written longer than this before its send is wrong; the event of a
send may be late by less."""
IDENTITY = ("key", "seq")
"""The columns that an output needs to trace a record to its send."""


@dataclass(frozen=True, kw_only=True)
class LatencyQuantiles:
    """How long records took, in milliseconds: the median, the 99th percentile, the maximum.

    The time of a record that never arrived is infinite. None where there was no record."""

    records: int
    """How many arrived."""
    never: int
    """How many never arrived."""
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """`written`: from send to write, also split into records written `before` a moment and those
    `since`. `committed`: from send until a reader of committed records could read it, as observed.
    `at_best`: the same at the earliest possible time: at the write for a record that was not
    observed to become readable, and at the start of a hole of the samples."""

    written: LatencyQuantiles
    before: LatencyQuantiles
    since: LatencyQuantiles
    committed: LatencyQuantiles
    at_best: LatencyQuantiles


def trace_records(
    spark: SparkSession,
    output: AppendedRecords,
    required: DataFrame,
    sent_ranges: Iterable[SentRange],
) -> DataFrame:
    """One row for each record of the view `sent` that must be in the output, by the identities in
    `required`: sent_ms, partition, offset, written_ms. The first of several copies counts; nulls
    where there is none."""
    wanted = required.select(*IDENTITY).distinct()
    sent = spark.table("sent").select(*IDENTITY, "index").join(wanted, [*IDENTITY], "semi")
    place = ("_partition", "_offset", "_timestamp_ms")
    arrived = parse_records(output.records, sent, IDENTITY, place, output.map)
    first = (
        arrived.groupBy(*IDENTITY)
        .agg(F.min(F.struct("_timestamp_ms", "_partition", "_offset")).alias("it"))
        .select(
            *IDENTITY,
            F.col("it._timestamp_ms").alias("written_ms"),
            F.col("it._partition").alias("partition"),
            F.col("it._offset").alias("offset"),
        )
    )
    stamps = [
        (
            sent_range.first,
            sent_range.last,
            output.ms(sent_range.since_ns),
            output.ms(sent_range.at_ns),
        )
        for sent_range in sent_ranges
    ]
    columns = "first bigint, last bigint, since_ms bigint, noted_ms bigint"
    send_events = F.broadcast(spark.createDataFrame(stamps, columns))
    share = F.expr("(index - first + 1) / (last - first + 1)")
    sent_ms = F.col("since_ms") + share * (F.col("noted_ms") - F.col("since_ms"))
    at = sent.join(send_events, F.col("index").between(F.col("first"), F.col("last")))
    at = at.withColumn("sent_ms", sent_ms.cast("bigint"))
    return at.join(first, [*IDENTITY], "left").select(
        "sent_ms", "partition", "offset", "written_ms"
    )


def with_read_ms(
    spark: SparkSession, records: DataFrame, stable_ends: Mapping[int, Samples], began_ms: int
) -> DataFrame:
    """The traced records with read_ms, when a reader of committed records could read them, and
    soonest_ms, the earliest possible time of that; null for records that never arrived or that no
    sample shows as stable."""
    steps = [
        (partition, *step)
        for partition, samples in stable_ends.items()
        for step in _stable_end_moves(samples, began_ms)
    ]
    columns = "of int, hidden bigint, stable bigint, soonest double, moved double"
    table = F.broadcast(spark.createDataFrame(steps, columns))
    in_move = F.col("offset").between(F.col("hidden"), F.col("stable") - 1)
    with_moves = records.join(table, (F.col("partition") == F.col("of")) & in_move, "left")
    # A record cannot be read before it is written, whatever the midpoint of two samples is.
    return with_moves.withColumns(
        {
            name: F.when(F.col("of").isNotNull(), F.greatest(at, "written_ms"))
            for name, at in (("soonest_ms", "soonest"), ("read_ms", "moved"))
        }
    )


def _stable_end_moves(samples: Samples, began_ms: int) -> Iterator[tuple[int, int, float, float]]:
    """Each move of the stable end: (old offset, new offset, earliest possible time, estimated
    time); times in epoch milliseconds."""
    moves = zip(samples.at_s, samples.at_s[1:], samples.value, samples.value[1:], strict=False)
    for before_s, at_s, hidden, stable in moves:
        if stable > hidden:
            middle_s = float(before_s + at_s) / 2
            sides_s = (before_s, at_s) if at_s - before_s > HOLE_S else (middle_s, middle_s)
            soonest_ms, moved_ms = (began_ms + 1000 * float(side_s) for side_s in sides_s)
            yield int(hidden), int(stable), soonest_ms, moved_ms


def latencies_of(records: DataFrame, moment_ms: int, ended_ms: int | None) -> Latencies:
    """The latencies of records with sent_ms, written_ms, soonest_ms and read_ms, in one pass.

    No latency is negative, even if the event of a send is later than the write. Of a record that is
    stamped `EARLY_MS` before its send it is not known when it could be read. `ended_ms` is when a
    run ended that was not drained: missing records might have arrived a moment later.
    """

    def since_sent(column: str) -> Column:
        took = F.greatest(F.col(column) - F.col("sent_ms"), F.lit(0)).cast("double")
        return F.when(F.isnotnull(column), took)  # F.greatest ignores nulls

    never = F.lit(inf)
    written = F.coalesce(since_sent("written_ms"), never)
    before = F.coalesce(F.col("written_ms") < moment_ms, F.lit(False))
    is_early = F.col("written_ms") < F.col("sent_ms") - EARLY_MS
    missing = (
        never
        if ended_ms is None
        else F.greatest(F.lit(ended_ms) - F.col("sent_ms"), F.lit(0)).cast("double")
    )
    best = F.coalesce(since_sent("soonest_ms"), since_sent("written_ms"), missing)
    parts = {
        "written": written,
        "before": F.when(before, written),
        "since": F.when(~before, written),
        "committed": F.when(is_early, never).otherwise(F.coalesce(since_sent("read_ms"), never)),
        "at_best": best,
    }
    aggregates = [
        F.struct(
            F.count_if(part < never).alias("arrived"),
            F.count_if(part == never).alias("never"),
            F.percentile(part, [0.5, 0.99, 1.0]).alias("t"),
        ).alias(name)
        for name, part in parts.items()
    ]
    found = records.agg(*aggregates).first()
    assert found is not None
    return Latencies(**{name: _quantiles(found[name]) for name in parts})


def _quantiles(found: Row) -> LatencyQuantiles:
    p50, p99, longest = found.t if found.arrived or found.never else (None, None, None)
    return LatencyQuantiles(
        records=found.arrived, never=found.never, p50_ms=p50, p99_ms=p99, max_ms=longest
    )
