"""Reconciliation: compare the actual records with the expected ones, one by one and exactly.

The digest comes first, the row diff second. The digest is a pass without a shuffle that finds the
buckets that differ. Only their records are grouped by identity (measured on ten million records:
nine times less work than four joins). When more than a fifth of the buckets differ, all records are
grouped. This file does not depend on runs: it takes two frames and a shape, and returns counts and
examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.anomaly import anomalies as anomaly_classes
from streamquake.harness.reconcile.caching import materialized, persisted
from streamquake.harness.reconcile.digest import Digest, digest_of
from streamquake.harness.reconcile.examples import examples_of, reordered_examples
from streamquake.harness.reconcile.final_state import final_records
from streamquake.harness.reconcile.order import (
    first_copies_of_keys,
    records_out_of_order,
    without_phantoms,
)
from streamquake.harness.reconcile.result import Differences, ReconciliationResult
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
    """Compare two sides, as `reconciled` does. The frames of the result are not kept."""
    with reconciled(expected, actual, shape, record_estimate=record_estimate) as result:
        return replace(result, differences=None)


@contextmanager
def reconciled(
    expected: DataFrame, actual: DataFrame, shape: Shape, *, record_estimate: int
) -> Iterator[ReconciliationResult]:
    """Compare two sides; the frames of the result are persisted while the block runs.
    `record_estimate` is roughly how many records are expected.

    Raises pyspark's AnalysisException when a side lacks a column that the shape names.
    """
    with final_records(actual, shape) as final, ExitStack() as stack:
        sides = ReconciliationInput(
            expected=expected,
            actual=final,
            all_actual=actual,
            shape=shape,
            buckets=buckets_for(record_estimate),
        )
        yield judge(sides, digest_of(sides.rows()), stack)


def buckets_for(record_estimate: int) -> int:
    """The number of buckets for roughly this many expected records."""
    return MANY_BUCKETS if record_estimate > MANY_RECORDS else BUCKETS


def judge(sides: ReconciliationInput, digest: Digest, stack: ExitStack) -> ReconciliationResult:
    """The result for two sides whose digest is known. Its frames are persisted until the stack is
    closed."""
    sides = _drop_unreadable(sides)
    base_result = _judge_base_classes(sides, digest, stack)
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
    findings = (*base_result.findings, *examples)
    differences = base_result.differences
    if findings and differences is None:
        differences = _no_differences(sides, stack)
    return ReconciliationResult(
        counts={**base_result.counts, **further_class_counts},
        findings=findings,
        differences=differences,
    )


def _judge_base_classes(
    sides: ReconciliationInput, digest: Digest, stack: ExitStack
) -> ReconciliationResult:
    shape = sides.shape
    result = ReconciliationResult(counts=_clean_counts(digest))
    if digest.dirty:
        result = _judge_dirty_buckets(sides, digest, result.counts, stack)
    if not shape.judges_order or digest.count(RowKind.UNPLACED):
        return result
    records = sides.actual
    if result.differences is not None and result.counts["phantom"]:
        records = without_phantoms(records, result.differences.found.where("phantom > 0"), shape)
    return _judge_order(records, sides, result, stack)


def _judge_dirty_buckets(
    sides: ReconciliationInput,
    digest: Digest,
    counts: Mapping[str, int | None],
    stack: ExitStack,
) -> ReconciliationResult:
    """Compare the records of dirty buckets. `counts` are the counts of the clean buckets."""
    expected, actual = _dirty_records(sides, digest, stack)
    differences = _differences(sides, expected, actual, stack)
    found = differences.found
    sums = found.agg(*(F.coalesce(F.sum(c), F.lit(0)).alias(c) for c in CLASSES)).first()
    assert sums is not None
    arrived = digest.count(RowKind.UNKNOWN) - sums.unknown_absent
    return ReconciliationResult(
        counts={**counts, **sums.asDict(), "unknown_arrived": arrived},
        findings=examples_of(found, expected, actual, sides.shape),
        differences=differences,
    )


def _differences(
    sides: ReconciliationInput, expected: DataFrame, suspects: DataFrame, stack: ExitStack
) -> Differences:
    found = stack.enter_context(materialized(all_anomalies(expected, suspects, sides.shape)))
    return Differences(
        found=found,
        suspects=suspects,
        expected=expected,
        actual=sides.actual,
        shape=sides.shape,
    )


def _no_differences(sides: ReconciliationInput, stack: ExitStack) -> Differences:
    """What the row diff finds where no bucket is dirty."""
    expected, actual = (side.where(F.lit(False)) for side in (sides.expected, sides.actual))
    return _differences(sides, expected, actual, stack)


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
        "reordered": None,
        "unknown_arrived": digest.count(RowKind.UNKNOWN),
        "malformed": digest.count(RowKind.MALFORMED),
    }


def _dirty_records(
    sides: ReconciliationInput, digest: Digest, stack: ExitStack
) -> tuple[DataFrame, DataFrame]:
    """The expected and the actual records of the dirty buckets, kept where they are few. Where many
    buckets are dirty, all records count as dirty: they are read again each time."""
    if len(digest.dirty) > DIRTY_SHARE * sides.buckets:
        return sides.expected, sides.actual
    expected, actual = (
        stack.enter_context(materialized(side.where(_in_dirty(side, digest, sides))))
        for side in (sides.expected, sides.actual)
    )
    return expected, actual


def _in_dirty(side: DataFrame, digest: Digest, sides: ReconciliationInput) -> Column:
    return bucket_of(side, sides.shape, sides.buckets, sides.key).isin(list(digest.dirty))


def _judge_order(
    records: DataFrame, sides: ReconciliationInput, result: ReconciliationResult, stack: ExitStack
) -> ReconciliationResult:
    """The result with the number of records out of order, and examples. The frames are persisted,
    since sorting is costly."""
    shape = sides.shape
    ordered = replace(result, counts={**result.counts, "reordered": 0})
    with persisted(records_out_of_order(records, shape)) as suspected:
        if suspected.isEmpty():
            return ordered
        first_copies = first_copies_of_keys(records, suspected, shape)
        out_of_order = stack.enter_context(materialized(records_out_of_order(first_copies, shape)))
        if not (count := out_of_order.count()):
            return ordered
    differences = result.differences or _no_differences(sides, stack)
    return ReconciliationResult(
        counts={**result.counts, "reordered": count},
        findings=(*result.findings, *reordered_examples(out_of_order, sides.actual, shape)),
        differences=replace(differences, out_of_order=out_of_order),
    )
