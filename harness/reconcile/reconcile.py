"""Reconciliation: what came out against what went in, record by record, exactly.

Digest first, drill after: a pass without a shuffle finds the buckets that differ, and only their
records are grouped by identity (measured on ten million records: nine times less work than the
four joins one would write first). When more than a fifth of the buckets differ, everything is
grouped. It knows nothing of runs: two frames and a shape go in, counts and examples come out.
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
from streamquake.harness.reconcile.order import first_copies, out_of_order, without_phantoms
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
"""Above this many expected records finer buckets pay; below, they cost more than they save."""
DIRTY_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class ReconciliationInput:
    """What is compared, and how."""

    expected: DataFrame
    actual: DataFrame
    """What stands there: without what was taken back."""
    arrived: DataFrame
    """All that came."""
    shape: Shape
    buckets: int
    key: str = field(default_factory=random_key)
    """Under which buckets are chosen and records hashed; of this comparison alone."""

    def rows(self) -> DataFrame:
        """Both sides in one form, hashed."""
        return both_sides(self.expected, self.actual, self.shape, self.buckets, self.key)


def reconcile(
    expected: DataFrame, actual: DataFrame, shape: Shape, *, about: int = 1_000_000
) -> ReconciliationResult:
    """Compare two sides. `about` is roughly how many records are expected.

    Raises pyspark's AnalysisException when a side lacks a column that the shape names.
    """
    with final_records(actual, shape) as stands:
        sides = ReconciliationInput(
            expected=expected,
            actual=stands,
            arrived=actual,
            shape=shape,
            buckets=buckets_for(about),
        )
        return judge(sides, digest_of(sides.rows()))


def buckets_for(about: int) -> int:
    """Into how many buckets roughly so many expected records are put."""
    return MANY_BUCKETS if about > MANY_RECORDS else BUCKETS


def judge(sides: ReconciliationInput, digest: Digest) -> ReconciliationResult:
    """The verdict on two sides, of which the digest is known."""
    sides = _drop_unreadable(sides)
    found = _judge_base_classes(sides, digest)
    also = {
        name: anomaly_classes[name]().judge(sides.expected, sides.arrived, sides.shape)
        for name in sides.shape.extra_classes
    }
    more = {name: None if counted is None else counted.count for name, counted in also.items()}
    examples = (finding for counted in also.values() if counted for finding in counted.findings)
    return ReconciliationResult(
        counts={**found.counts, **more}, findings=(*found.findings, *examples)
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
    """The verdict where some buckets differ. `counts` are those of all others."""
    shape = sides.shape
    with (
        _dirty_records(sides, digest) as (suspects, clean),
        persisted(all_anomalies(suspects.expected, suspects.actual, shape)) as found,
    ):
        sums = found.agg(*(F.coalesce(F.sum(c), F.lit(0)).alias(c) for c in CLASSES)).first()
        assert sums is not None
        arrived = digest.count(RowKind.UNKNOWN) - sums.unknown_absent
        counts = {**counts, **sums.asDict(), "unknown_arrived": arrived, "reordered": None}
        findings = examples_of(found, suspects.expected, suspects.actual, shape)
        if not ordered:
            return ReconciliationResult(counts=counts, findings=findings)
        real = suspects.actual
        if sums.phantom:
            real = without_phantoms(real, found.where("phantom > 0"), shape)
        kept = real if clean is None else clean.select(*real.columns).unionByName(real)
        reordered, out_of_order = _judge_order(kept, sides)
        return ReconciliationResult(
            counts={**counts, "reordered": reordered}, findings=(*findings, *out_of_order)
        )


def missing_or_repeated(expected: DataFrame, actual: DataFrame, shape: Shape) -> DataFrame:
    """All of the lost and the duplicated, not examples: one row per identity, with how many of it
    are `lost` and how many copies are too many, `duplicated`."""
    found = all_anomalies(expected, actual, shape)
    return found.where("lost > 0 OR duplicated > 0").select(*shape.identity, "lost", "duplicated")


def all_anomalies(expected: DataFrame, actual: DataFrame, shape: Shape) -> DataFrame:
    """One row per identity that is in a class of the drill, with how often it is in each."""
    return count_anomalies(rows_by_value(expected, actual, shape), shape)


def _drop_unreadable(sides: ReconciliationInput) -> ReconciliationInput:
    """Without the records that are counted only."""
    if sides.shape.unread is None:
        return sides
    readable = ~F.col(sides.shape.unread)
    return replace(
        sides,
        expected=sides.expected.where(readable),
        actual=sides.actual.where(readable),
        arrived=sides.arrived.where(readable),
    )


def _clean_counts(digest: Digest) -> Mapping[str, int | None]:
    """The counts when nothing is dirty: everything expected is there, once and unchanged."""
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
    """The records of the dirty buckets, and the actual records of all others.

    Where they are few they are kept, since they are looked at more than once. Where almost all are
    suspect they are everything, read again each time, and there are no others.
    """
    if len(digest.dirty) > DIRTY_SHARE * sides.buckets:
        yield sides, None
        return
    sent, seen = (_in_dirty(side, digest, sides) for side in (sides.expected, sides.actual))
    with (
        persisted(sides.expected.where(sent)) as expected,
        persisted(sides.actual.where(seen)) as actual,
    ):
        yield replace(sides, expected=expected, actual=actual), sides.actual.where(~seen)


def _in_dirty(side: DataFrame, digest: Digest, sides: ReconciliationInput) -> Column:
    return bucket_of(side, sides.shape, sides.buckets, sides.key).isin(list(digest.dirty))


def _judge_order(
    actual: DataFrame, sides: ReconciliationInput
) -> tuple[int | None, tuple[Finding, ...]]:
    """How many records are out of order, and examples. Kept, since the sorting is the dear part."""
    with persisted(out_of_order(actual, sides.shape)) as suspected:
        if suspected.isEmpty():
            return 0, ()
    with persisted(out_of_order(first_copies(actual, sides.shape), sides.shape)) as back:
        count = back.count()
        return count, reordered_examples(back, sides.actual, sides.shape) if count else ()
