"""The digest: which buckets of records differ between the two sides.

The rows of each side fall into buckets by identity. Each bucket has a signed count, signed sums and
an xor of the hashes of its rows. No row is shuffled: each task returns one line per bucket and kind
of row. A bucket where all of them are zero is clean. The xor alone would miss an even number of
copies; the sum alone would miss differences that compensate each other. Anti-entropy repair and
Merkle trees use the same idea.

The hashes have a random key. The chance that a bucket is clean although its records differ is
2**-64: both halves of the hash must have equal sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.row_hashes import ACTUAL_KINDS, EXPECTED_KINDS, RowKind

HALF_BITS = 32
"""Bits of a hash in each of its two sums, so that 2**31 rows of a bucket cannot overflow one."""


@dataclass(frozen=True, kw_only=True)
class Digest:
    """The result of one pass over both sides: the dirty buckets, and counts of rows."""

    dirty: tuple[int, ...]
    rows: Mapping[RowKind, int]
    """The number of rows of each kind."""

    def count(self, *kinds: RowKind) -> int:
        """The number of rows of these kinds."""
        return sum(self.rows.get(kind, 0) for kind in kinds)


def digest_of(rows: DataFrame) -> Digest:
    """The digest of the rows of `both_sides`, in one pass. A failed send counts as never sent."""
    high = F.shiftright("values", HALF_BITS)
    low = F.col("values").bitwiseAND(F.lit((1 << HALF_BITS) - 1))
    sign = F.when(_is(EXPECTED_KINDS), 1).when(_is(ACTUAL_KINDS), -1).otherwise(0)
    by_bucket = rows.groupBy("bucket").agg(
        F.sum(sign).alias("count"),
        F.sum(sign * high).alias("high"),
        F.sum(sign * low).alias("low"),
        F.bit_xor(F.when(sign != 0, F.col("values"))).alias("xor"),
        *(F.count_if(F.col("what") == kind.value).alias(kind.name) for kind in RowKind),
    )
    # An unreadable record has null columns, so a record of nulls would balance it: it always makes
    # its bucket dirty.
    differs = f"count != 0 OR high != 0 OR low != 0 OR xor != 0 OR {RowKind.MALFORMED.name} > 0"
    dirty = F.when(F.expr(differs), F.col("bucket"))
    totals = by_bucket.agg(
        F.collect_list(dirty).alias("dirty"),
        *(F.sum(kind.name).alias(kind.name) for kind in RowKind),
    ).first()
    assert totals is not None
    return Digest(
        dirty=tuple(totals.dirty), rows={kind: totals[kind.name] or 0 for kind in RowKind}
    )


def _is(kinds: Iterable[RowKind]) -> Column:
    return F.col("what").isin([kind.value for kind in kinds])
