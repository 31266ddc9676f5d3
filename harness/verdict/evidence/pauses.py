"""Pauses: for how long nothing more came out for a key, or in a partition of an output.

A pause is the time between one record and the next of the same group, however it came about. It
counts as far as it touches a span of time at all, and counts whole: it began when the last record
before the span came, and ended when the first one after it did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from streamquake.harness.verdict.evidence.sent_times import SentRange


class TimeSpan(NamedTuple):
    """An interval of time in epoch milliseconds."""

    start_ms: int
    end_ms: int
    cut_ms: int | None = None
    """When another fault was called: a pause counts until then at the longest."""


class UsualGaps(NamedTuple):
    """How long the gaps between two records of a group are without a fault, in milliseconds."""

    p99_ms: float
    """What 99 of 100 gaps last at most."""
    rhythm_ms: float
    """Half of the time lies in gaps at least that long. Where output comes in batches that is the
    time from batch to batch, however many records each batch has for a group: between those gaps
    are short and many."""

    @property
    def longest_ms(self) -> float:
        return max(self)


def usual_gaps(records: DataFrame, by: str, until_ms: int) -> UsualGaps | None:
    """The gaps until a moment; None without any."""
    gap = F.col("next_ms") - F.col("timestamp_ms")
    gaps = _with_next(records, by).where(F.col("next_ms") <= until_ms)
    found = gaps.agg(F.percentile(gap, 0.99), F.percentile(gap, 0.5, gap)).first()
    if found is None or found[0] is None:
        return None
    return UsualGaps(p99_ms=float(found[0]), rhythm_ms=float(found[1] or 0.0))


def longest_pauses(records: DataFrame, by: str, span: TimeSpan) -> DataFrame:
    """One row per group: `of` (its value), gap_ms, since_ms, partition (of the last record before
    the pause), last_ms (of its last record).

    A group whose last record came before the end pauses until the end; one whose first came after
    the start, from the start.
    """
    start, end = F.lit(span.start_ms).cast("bigint"), F.lit(span.end_ms).cast("bigint")
    cut = F.lit(span.cut_ms).cast("bigint")
    stamp = F.col("timestamp_ms")
    # The least of what there is: without a cut that is null.
    until = F.least(F.coalesce("next_ms", F.greatest(stamp, end)), cut)
    gap = F.struct((until - stamp).alias("gap_ms"), stamp.alias("since_ms"), "partition")
    longest = (
        _with_next(records, by)
        .groupBy(F.col(by).alias("of"))
        .agg(
            F.max(F.when((stamp < end) & (until > start), gap)).alias("it"),
            F.min(F.struct((F.least(stamp, cut) - start).alias("gap_ms"), "partition")).alias(
                "head"
            ),
            F.max(stamp).alias("last_ms"),
        )
    )
    late = F.col("head.gap_ms") > F.coalesce("it.gap_ms", F.lit(0))
    return longest.select(
        "of",
        F.when(late, F.col("head.gap_ms")).otherwise(F.col("it.gap_ms")).alias("gap_ms"),
        F.when(late, start).otherwise(F.col("it.since_ms")).alias("since_ms"),
        F.when(late, F.col("head.partition")).otherwise(F.col("it.partition")).alias("partition"),
        "last_ms",
    )


def with_endless(pauses: DataFrame, sends: DataFrame, span: TimeSpan) -> DataFrame:
    """The longest pauses, where a group that came no more from before the end of the span on pauses
    until it was last sent: a pause that began shortly before the end would seem short. `sends`
    has `of` and sent_ms."""
    last = F.col("last_ms")
    endless = F.when(last < span.end_ms, F.col("sent_ms") - last)
    longer = endless > F.col("gap_ms")
    return pauses.join(sends, "of", "left").select(
        "of",
        F.when(longer, endless).otherwise(F.col("gap_ms")).alias("gap_ms"),
        F.when(longer, last).otherwise(F.col("since_ms")).alias("since_ms"),
        "partition",
    )


def last_sends(spark: SparkSession, notes: Iterable[SentRange], began_ms: int) -> DataFrame:
    """When each key was last sent, by these notes: `of`, sent_ms (at the latest note before it). It
    reads the view `sent`."""
    sent = _noted(spark, notes, began_ms)
    return sent.groupBy(F.col("key").alias("of")).agg(F.max("since_ms").alias("sent_ms"))


def keys_sent_throughout(
    spark: SparkSession, notes: Iterable[SentRange], began_ms: int, span: TimeSpan, limit_ms: float
) -> DataFrame:
    """The keys of which the load sent all through the span, never pausing as long as the limit
    itself: one column, `key`. It reads the view `sent`."""
    times = _noted(spark, notes, began_ms).select("key", "at_ms").distinct()
    start, end = F.lit(span.start_ms).cast("bigint"), F.lit(span.end_ms).cast("bigint")
    change = Window.partitionBy("key").orderBy("at_ms")
    before: Column = F.col("at_ms") - F.coalesce(F.lag("at_ms").over(change), start)
    silences = (
        times.withColumn("before", before)
        .groupBy("key")
        .agg(F.max("before").alias("before"), (end - F.max("at_ms")).alias("after"))
    )
    return silences.where(F.greatest("before", "after") < limit_ms).select("key")


def _noted(spark: SparkSession, notes: Iterable[SentRange], began_ms: int) -> DataFrame:
    """The records of the notes: key, and since_ms and at_ms, between which each was settled."""
    stamps = [
        (n.first, n.last, began_ms + n.since_ns // 1_000_000, began_ms + n.at_ns // 1_000_000)
        for n in notes
    ]
    columns = "first bigint, last bigint, since_ms bigint, at_ms bigint"
    noted = spark.createDataFrame(stamps, columns)
    sent = spark.table("sent").where(
        F.col("index").between(stamps[0][0] if stamps else 0, stamps[-1][1] if stamps else -1)
    )
    of_note = F.col("index").between(F.col("first"), F.col("last"))
    return sent.join(F.broadcast(noted), of_note).select("key", "since_ms", "at_ms")


def _with_next(records: DataFrame, by: str) -> DataFrame:
    place = ["offset"] if by == "partition" else ["partition", "offset"]
    change = Window.partitionBy(by).orderBy("timestamp_ms", *place)
    return records.withColumn("next_ms", F.lead("timestamp_ms").over(change))
