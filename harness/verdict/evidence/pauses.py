"""Pauses: for how long an output had no record of a key, or in a partition.

A pause is the time between one record and the next of the same group, whatever its cause. A pause
that overlaps a span of time counts in full length: from the last record before the span to the
first one after it. Where other faults were called before or after, it counts only between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.row_hashes import ACKNOWLEDGED
from streamquake.harness.verdict.evidence.sent_times import SentRange
from streamquake.harness.verdict.expected_output import STATUS


class TimeSpan(NamedTuple):
    """An interval of time in epoch milliseconds."""

    start_ms: int
    end_ms: int
    cut_ms: int | None = None
    """When another fault was called: a pause never counts beyond it."""
    since_ms: int | None = None
    """Where a pause may have begun by an earlier fault: pauses count only from this moment on."""

    @property
    def begin_ms(self) -> int:
        """From when a group without records pauses."""
        return self.start_ms if self.since_ms is None else self.since_ms


class UsualGaps(NamedTuple):
    """The usual gaps between two records of a group, without a fault, in milliseconds."""

    p99_ms: float
    """The 99th percentile of the gaps."""
    period_ms: float
    """Half of the time is in gaps at least that long. Where output arrives in batches, it is the
    time from batch to batch: the many gaps within a batch are short and add up to little time."""

    @property
    def longest_ms(self) -> float:
        return max(self)


class OtherCauses(NamedTuple):
    """What else than the faults may have made a pause, in epoch milliseconds."""

    silences: tuple[tuple[int, int], ...] = ()
    """The load sent nothing from the one moment to the other."""
    down_until_ms: int | None = None
    """Until when the job was down because of a failure before the first fault; None where it was
    not."""


def usual_gaps(records: DataFrame, by: str, until_ms: int) -> UsualGaps | None:
    """The gaps until a moment; None without any."""
    gap = F.col("next_ms") - F.col("timestamp_ms")
    gaps = _with_next(records, by).where(F.col("next_ms") <= until_ms)
    found = gaps.agg(F.percentile(gap, 0.99), F.percentile(gap, 0.5, gap)).first()
    if found is None or found[0] is None:
        return None
    return UsualGaps(p99_ms=float(found[0]), period_ms=float(found[1] or 0.0))


def longest_pauses(records: DataFrame, by: str, span: TimeSpan) -> DataFrame:
    """One row per group: `of` (its value), gap_ms, since_ms, partition (of the last record before
    the pause), last_ms (of its last record, not before `since_ms` of the span).

    A group whose last record is before the end pauses until the end; one whose first record is
    after the start pauses from the start.
    """
    start, end = F.lit(span.begin_ms).cast("bigint"), F.lit(span.end_ms).cast("bigint")
    cut, earliest = F.lit(span.cut_ms).cast("bigint"), F.lit(span.since_ms).cast("bigint")
    stamp = F.col("timestamp_ms")
    # F.least and F.greatest ignore nulls: without a cut, `cut` is null.
    until = F.least(F.coalesce("next_ms", F.greatest(stamp, end)), cut)
    since = F.greatest(stamp, earliest)
    gap = F.struct((until - since).alias("gap_ms"), since.alias("since_ms"), "partition")
    longest = (
        _with_next(records, by)
        .groupBy(F.col(by).alias("of"))
        .agg(
            F.max(F.when((stamp < end) & (until > start), gap)).alias("it"),
            F.min(F.struct((F.least(stamp, cut) - start).alias("gap_ms"), "partition")).alias(
                "head"
            ),
            F.max(since).alias("last_ms"),
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


def with_unended_pauses(pauses: DataFrame, sends: DataFrame, span: TimeSpan) -> DataFrame:
    """The longest pauses, where a group without records after the span pauses until its last send:
    a pause that began shortly before the end would otherwise seem short. `sends` has `of` and
    sent_ms."""
    last = F.col("last_ms")
    unended_ms = F.when(last < span.end_ms, F.col("sent_ms") - last)
    longer = unended_ms > F.col("gap_ms")
    return pauses.join(sends, "of", "left").select(
        "of",
        F.when(longer, unended_ms).otherwise(F.col("gap_ms")).alias("gap_ms"),
        F.when(longer, last).otherwise(F.col("since_ms")).alias("since_ms"),
        "partition",
    )


def with_own_ms(pauses: DataFrame, span: TimeSpan, causes: OtherCauses) -> DataFrame:
    """The pauses (gap_ms, since_ms) with own_ms, the part that no other cause than the faults
    explains: without the silences of the load, and nothing of a pause that began while the job was
    down before them. A group without records, whose since_ms is null, pauses from the span's
    begin."""
    since = F.coalesce("since_ms", F.lit(span.begin_ms).cast("bigint"))
    until = since + F.col("gap_ms")
    own_ms = F.col("gap_ms")
    for silent_ms, sent_ms in causes.silences:
        both_ms = F.least(until, F.lit(sent_ms)) - F.greatest(since, F.lit(silent_ms))
        own_ms = own_ms - F.greatest(both_ms, F.lit(0))
    if causes.down_until_ms is not None:
        own_ms = F.when(since <= causes.down_until_ms, F.lit(0)).otherwise(own_ms)
    return pauses.withColumn("own_ms", own_ms)


def last_sends(spark: SparkSession, sent_ranges: Iterable[SentRange], began_ms: int) -> DataFrame:
    """When each key was last sent, by the events of the load: `of`, sent_ms (of the latest event
    before it). It reads the view `sent`."""
    sent = _with_send_times(spark, sent_ranges, began_ms)
    return sent.groupBy(F.col("key").alias("of")).agg(F.max("since_ms").alias("sent_ms"))


def keys_sent_throughout(
    spark: SparkSession,
    sent_ranges: Iterable[SentRange],
    began_ms: int,
    span: TimeSpan,
    limit_ms: float,
) -> DataFrame:
    """The keys that the load sent throughout the span, without a pause of the limit's length: one
    column, `key`. It reads the view `sent`."""
    times = _with_send_times(spark, sent_ranges, began_ms).select("key", "at_ms").distinct()
    start, end = F.lit(span.start_ms).cast("bigint"), F.lit(span.end_ms).cast("bigint")
    change = Window.partitionBy("key").orderBy("at_ms")
    before: Column = F.col("at_ms") - F.coalesce(F.lag("at_ms").over(change), start)
    silences = (
        times.withColumn("before", before)
        .groupBy("key")
        .agg(F.max("before").alias("before"), (end - F.max("at_ms")).alias("after"))
    )
    return silences.where(F.greatest("before", "after") < limit_ms).select("key")


def _with_send_times(
    spark: SparkSession, sent_ranges: Iterable[SentRange], began_ms: int
) -> DataFrame:
    """The records of these ranges: key, and since_ms and at_ms, between which each was
    acknowledged."""
    stamps = [
        (
            sent_range.first,
            sent_range.last,
            began_ms + sent_range.since_ns // 1_000_000,
            began_ms + sent_range.at_ns // 1_000_000,
        )
        for sent_range in sent_ranges
    ]
    columns = "first bigint, last bigint, since_ms bigint, at_ms bigint"
    send_events = spark.createDataFrame(stamps, columns)
    sent = acknowledged_sends(spark).where(
        F.col("index").between(stamps[0][0] if stamps else 0, stamps[-1][1] if stamps else -1)
    )
    in_range = F.col("index").between(F.col("first"), F.col("last"))
    return sent.join(F.broadcast(send_events), in_range).select("key", "since_ms", "at_ms")


def acknowledged_sends(spark: SparkSession) -> DataFrame:
    """The acknowledged records of the view `sent`: the system may never have had the others."""
    sent = spark.table("sent")
    if STATUS not in sent.columns:
        return sent
    return sent.where(F.col(STATUS) == ACKNOWLEDGED)


def _with_next(records: DataFrame, by: str) -> DataFrame:
    place = ["offset"] if by == "partition" else ["partition", "offset"]
    change = Window.partitionBy(by).orderBy("timestamp_ms", *place)
    return records.withColumn("next_ms", F.lead("timestamp_ms").over(change))
