"""How long records took from being sent to being read: by a reader of everything that is written,
and by one of committed records alone.

When a record was sent is shown by the events of the load: those between two of them are taken as
sent evenly in that time, as the load does, and a few hundredths of a second late, since they are
noted when they were acknowledged. When it was written is the broker's own stamp. When it could be
read as committed shows from the samples of each partition's last stable offset: between the last
one that still hid it and the first one that did not; the middle of the two counts, as either end
would lean to one side. Across a hole of the samples the middle says nothing: there both ends count,
the one for what is late at best, the other for what was seen to be in time.
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

IDENTITY = ("key", "seq")
"""What a record of the output must say for its send to be known."""


@dataclass(frozen=True, kw_only=True)
class LatencyQuantiles:
    """How long records took, in milliseconds: the median, what 99 of 100 took at most, the longest.

    Of a record that never came the time is infinite. None where there was no record."""

    records: int
    """How many came."""
    never: int
    """How many did not."""
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """From send to write, of all records and of those on either side of a moment; from send to the
    moment at which a reader of committed records could have them, as it was seen, and as it was at
    best: what was written and not seen to become readable might have been read at once, and what
    became readable in a hole of the samples at the hole's begin."""

    written: LatencyQuantiles
    before: LatencyQuantiles
    since: LatencyQuantiles
    committed: LatencyQuantiles
    at_best: LatencyQuantiles


def traced(
    spark: SparkSession, output: AppendedRecords, must_come: DataFrame, notes: Iterable[SentRange]
) -> DataFrame:
    """One row for each record of the view `sent` that had to come out, by the identities in
    `must_come`: sent_ms, partition, offset, written_ms; of copies the first, and nulls where none
    came."""
    wanted = must_come.select(*IDENTITY).distinct()
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
        (note.first, note.last, output.ms(note.since_ns), output.ms(note.at_ns)) for note in notes
    ]
    columns = "first bigint, last bigint, since_ms bigint, noted_ms bigint"
    noted = F.broadcast(spark.createDataFrame(stamps, columns))
    share = F.expr("(index - first + 1) / (last - first + 1)")
    sent_ms = F.col("since_ms") + share * (F.col("noted_ms") - F.col("since_ms"))
    at = sent.join(noted, F.col("index").between(F.col("first"), F.col("last")))
    at = at.withColumn("sent_ms", sent_ms.cast("bigint"))
    return at.join(first, [*IDENTITY], "left").select(
        "sent_ms", "partition", "offset", "written_ms"
    )


def with_read_ms(
    spark: SparkSession, records: DataFrame, stable_ends: Mapping[int, Samples], began_ms: int
) -> DataFrame:
    """The traced records with read_ms, when a reader of committed records could have them, and
    soonest_ms, since when at best; null for those that never came or that no sample shows as
    stable."""
    steps = [
        (partition, *step)
        for partition, samples in stable_ends.items()
        for step in _steps(samples, began_ms)
    ]
    columns = "of int, hidden bigint, stable bigint, soonest double, moved double"
    table = F.broadcast(spark.createDataFrame(steps, columns))
    within = F.col("offset").between(F.col("hidden"), F.col("stable") - 1)
    shown = records.join(table, (F.col("partition") == F.col("of")) & within, "left")
    # A record cannot be read before it is written, whatever the middle of two samples says.
    return shown.withColumns(
        {
            name: F.when(F.col("of").isNotNull(), F.greatest(at, "written_ms"))
            for name, at in (("soonest_ms", "soonest"), ("read_ms", "moved"))
        }
    )


def _steps(samples: Samples, began_ms: int) -> Iterator[tuple[int, int, float, float]]:
    """Each time the stable end moved: from where, to where, since when at best, and by when (epoch
    milliseconds)."""
    moves = zip(samples.at_s, samples.at_s[1:], samples.value, samples.value[1:], strict=False)
    for before_s, at_s, hidden, stable in moves:
        if stable > hidden:
            middle_s = float(before_s + at_s) / 2
            sides_s = (before_s, at_s) if at_s - before_s > HOLE_S else (middle_s, middle_s)
            soonest_ms, moved_ms = (began_ms + 1000 * float(side_s) for side_s in sides_s)
            yield int(hidden), int(stable), soonest_ms, moved_ms


def latencies(records: DataFrame, moment_ms: int, ended_ms: int | None) -> Latencies:
    """The latencies of records with sent_ms, written_ms, soonest_ms and read_ms, in one pass.

    A note that is later than the record it tells of makes no time negative. `ended_ms` is when a
    run ended that was not drained: what was missing then might have come a moment later.
    """

    def since_sent(column: str) -> Column:
        took = F.greatest(F.col(column) - F.col("sent_ms"), F.lit(0)).cast("double")
        return F.when(F.isnotnull(column), took)  # of nulls the greatest is the other value

    never = F.lit(inf)
    written = F.coalesce(since_sent("written_ms"), never)
    before = F.coalesce(F.col("written_ms") < moment_ms, F.lit(False))
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
        "committed": F.coalesce(since_sent("read_ms"), never),
        "at_best": best,
    }
    aggregates = [
        F.struct(
            F.count_if(part < never).alias("came"),
            F.count_if(part == never).alias("never"),
            F.percentile(part, [0.5, 0.99, 1.0]).alias("t"),
        ).alias(name)
        for name, part in parts.items()
    ]
    found = records.agg(*aggregates).first()
    assert found is not None
    return Latencies(**{name: _delays(found[name]) for name in parts})


def _delays(found: Row) -> LatencyQuantiles:
    p50, p99, longest = found.t if found.came or found.never else (None, None, None)
    return LatencyQuantiles(
        records=found.came, never=found.never, p50_ms=p50, p99_ms=p99, max_ms=longest
    )
