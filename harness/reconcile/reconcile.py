"""Reconciliation: compare the actual records with the expected ones, one by one and exactly.

The digest comes first, the row diff second. The digest is a pass without a shuffle that finds the
buckets that differ. Only their records are grouped by identity (measured on ten million records:
nine times less work than four joins). When more than a fifth of the buckets differ, all records are
grouped. This file does not depend on runs: it takes two frames and a shape, and returns counts and
examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.anomaly import anomalies as anomaly_classes
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.digest import Digest, digest_of
from streamquake.harness.reconcile.examples import examples_of, reordered_examples
from streamquake.harness.reconcile.final_state import final_records
from streamquake.harness.reconcile.order import first_copies, records_out_of_order, without_phantoms
from streamquake.harness.reconcile.result import ReconciliationResult
from streamquake.harness.reconcile.row_diff import CLASSES, count_anomalies
from streamquake.harness.reconcile.row_hashes import (
    ACTUAL_KINDS,
    RowKind,
    both_sides,
    bucket_of,
    random_key,
    rows_by_value,
)
from streamquake.harness.reconcile.shape import Shape
from streamquake.reports.record.outcome import Finding

BUCKETS = 4096
MANY_BUCKETS = 65_536
MANY_RECORDS = 5_000_000
"""Above this many expected records finer buckets save time; below, they cost more than they
save."""
DIRTY_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class ReconciliationInput:
    """The two sides to compare, and how to compare them."""

    expected: DataFrame
    actual: DataFrame
    """The final records: those that were not retracted, replaced or deleted."""
    all_actual: DataFrame
    """All actual records."""
    shape: Shape
    buckets: int
    key: str = field(default_factory=random_key)
    """The key of the hashes that choose buckets and compare records; random for each comparison."""

    def rows(self) -> DataFrame:
        """The rows of both sides in one form, hashed."""
        return both_sides(self.expected, self.actual, self.shape, self.buckets, self.key)


def reconcile(
    expected: DataFrame, actual: DataFrame, shape: Shape, *, record_estimate: int = 1_000_000
) -> ReconciliationResult:
    """Compare two sides. `record_estimate` is roughly how many records are expected.

    Raises pyspark's AnalysisException when a side lacks a column that the shape names.
    """
    with final_records(actual, shape) as final:
        sides = ReconciliationInput(
            expected=expected,
            actual=final,
            all_actual=actual,
            shape=shape,
            buckets=buckets_for(record_estimate),
        )
        return judge(sides, digest_of(sides.rows()))


def buckets_for(record_estimate: int) -> int:
    """The number of buckets for roughly this many expected records."""
    return MANY_BUCKETS if record_estimate > MANY_RECORDS else BUCKETS


def judge(sides: ReconciliationInput, digest: Digest) -> ReconciliationResult:
    """The counts and examples of two sides whose digest is known."""
    sides = _drop_unreadable(sides)
    base_result = _judge_base_classes(sides, digest)
    further_counts = {
        name: anomaly_classes[name]().judge(sides.expected, sides.all_actual, sides.shape)
        for name in sides.shape.extra_classes
    }
    further_class_counts = {
        name: None if counted is None else counted.count for name, counted in further_counts.items()
    }
    examples = (
        finding for counted in further_counts.values() if counted for finding in counted.findings
    )
    return ReconciliationResult(
        counts={**base_result.counts, **further_class_counts},
        findings=(*base_result.findings, *examples),
    )


def _judge_base_classes(sides: ReconciliationInput, digest: Digest) -> ReconciliationResult:
    counts = _clean_counts(digest)
    ordered = sides.shape.judges_order and not digest.count(RowKind.UNPLACED)
    if digest.dirty:
        return _judge_dirty_buckets(sides, digest, counts, ordered)
    reordered, findings = _judge_order(sides.actual, sides) if ordered else (None, ())
    return ReconciliationResult(counts={**counts, "reordered": reordered}, findings=findings)


def _judge_dirty_buckets(
    sides: ReconciliationInput, digest: Digest, counts: Mapping[str, int | None], ordered: bool
) -> ReconciliationResult:
    """Compare the records of dirty buckets. `counts` are the counts of the clean buckets."""
    shape = sides.shape
    with (
        _dirty_records(sides, digest) as (dirty, clean),
        persisted(all_anomalies(dirty.expected, dirty.actual, shape)) as anomalies,
    ):
        sums = anomalies.agg(*(F.coalesce(F.sum(c), F.lit(0)).alias(c) for c in CLASSES)).first()
        assert sums is not None
        arrived = digest.count(RowKind.UNKNOWN) - sums.unknown_absent
        counts = {**counts, **sums.asDict(), "unknown_arrived": arrived, "reordered": None}
        findings = examples_of(anomalies, dirty.expected, dirty.actual, shape)
        if not ordered:
            return ReconciliationResult(counts=counts, findings=findings)
        sent_records = dirty.actual
        if sums.phantom:
            sent_records = without_phantoms(sent_records, anomalies.where("phantom > 0"), shape)
        ordered_records = (
            sent_records
            if clean is None
            else clean.select(*sent_records.columns).unionByName(sent_records)
        )
        reordered, order_findings = _judge_order(ordered_records, sides)
        return ReconciliationResult(
            counts={**counts, "reordered": reordered}, findings=(*findings, *order_findings)
        )


def missing_or_repeated_records(expected: DataFrame, actual: DataFrame, shape: Shape) -> DataFrame:
    """All lost and all duplicated records, not only examples: one row per identity, with the number
    of `lost` records and of extra copies, `duplicated`."""
    anomalies = all_anomalies(expected, actual, shape)
    return anomalies.where("lost > 0 OR duplicated > 0").select(
        *shape.identity, "lost", "duplicated"
    )


def all_anomalies(expected: DataFrame, actual: DataFrame, shape: Shape) -> DataFrame:
    """One row per identity that has an anomaly, with its count in each class of the row diff."""
    return count_anomalies(rows_by_value(expected, actual, shape), shape)


def _drop_unreadable(sides: ReconciliationInput) -> ReconciliationInput:
    """Both sides without the unreadable records, which are only counted."""
    if sides.shape.unreadable is None:
        return sides
    readable = ~F.col(sides.shape.unreadable)
    return replace(
        sides,
        expected=sides.expected.where(readable),
        actual=sides.actual.where(readable),
        all_actual=sides.all_actual.where(readable),
    )


def _clean_counts(digest: Digest) -> Mapping[str, int | None]:
    """The counts where no bucket is dirty: each expected record is present, once and unchanged."""
    return {
        "expected": digest.count(RowKind.OK),
        "actual": digest.count(*ACTUAL_KINDS),
        **dict.fromkeys(CLASSES, 0),
        "unknown_arrived": digest.count(RowKind.UNKNOWN),
        "malformed": digest.count(RowKind.MALFORMED),
    }


@contextmanager
def _dirty_records(
    sides: ReconciliationInput, digest: Digest
) -> Iterator[tuple[ReconciliationInput, DataFrame | None]]:
    """The records of the dirty buckets, and the actual records of the clean ones.

    A few dirty records are persisted, since they are read more than once. Where many buckets are
    dirty, all records count as dirty: they are read again each time, and the second frame is None.
    """
    if len(digest.dirty) > DIRTY_SHARE * sides.buckets:
        yield sides, None
        return
    expected_dirty, actual_dirty = (
        _in_dirty(side, digest, sides) for side in (sides.expected, sides.actual)
    )
    with (
        persisted(sides.expected.where(expected_dirty)) as expected,
        persisted(sides.actual.where(actual_dirty)) as actual,
    ):
        yield replace(sides, expected=expected, actual=actual), sides.actual.where(~actual_dirty)


def _in_dirty(side: DataFrame, digest: Digest, sides: ReconciliationInput) -> Column:
    return bucket_of(side, sides.shape, sides.buckets, sides.key).isin(list(digest.dirty))


def _judge_order(
    actual: DataFrame, sides: ReconciliationInput
) -> tuple[int | None, tuple[Finding, ...]]:
    """The number of records out of order, and examples. The frames are persisted, since sorting is
    costly."""
    with persisted(records_out_of_order(actual, sides.shape)) as suspected:
        if suspected.isEmpty():
            return 0, ()
    with persisted(
        records_out_of_order(first_copies(actual, sides.shape), sides.shape)
    ) as out_of_order:
        count = out_of_order.count()
        return count, reordered_examples(out_of_order, sides.actual, sides.shape) if count else ()
