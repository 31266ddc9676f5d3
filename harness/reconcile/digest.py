"""The digest: which buckets of records differ at all between the two sides.

Each side's rows fall into buckets by identity, and every bucket keeps a signed count, signed sums
and an xor of the rows' hashes. No row is moved: each task hands on one line per bucket and kind of
row. A bucket that balances in all of them is clean; xor alone would miss an even number of repeats,
the sum alone what compensates. Anti-entropy repair and Merkle trees rest on the same idea.

The chance that a bucket whose records differ balances is 2**-64 under a key that the records do not
know: both halves of the hash must sum up alike.
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
    """What one pass over both sides found."""

    dirty: tuple[int, ...]
    rows: Mapping[RowKind, int]
    """How many rows there are of each kind."""

    def count(self, *kinds: RowKind) -> int:
        """How many rows there are of some kinds."""
        return sum(self.rows.get(kind, 0) for kind in kinds)


def digest_of(rows: DataFrame) -> Digest:
    """One pass over the rows of `both_sides`. Sends that failed count as never sent."""
    high = F.shiftright("values", HALF_BITS)
    low = F.col("values").bitwiseAND(F.lit((1 << HALF_BITS) - 1))
    by_kind = rows.groupBy("bucket", "what").agg(
        F.count(F.lit(1)).alias("count"),
        F.sum(high).alias("high"),
        F.sum(low).alias("low"),
        F.bit_xor("values").alias("xor"),
    )
    sign = F.when(_is(EXPECTED_KINDS), 1).when(_is(ACTUAL_KINDS), -1).otherwise(0)
    by_bucket = by_kind.groupBy("bucket").agg(
        F.sum(sign * F.col("count")).alias("count"),
        F.sum(sign * F.col("high")).alias("high"),
        F.sum(sign * F.col("low")).alias("low"),
        F.bit_xor(F.when(sign != 0, F.col("xor"))).alias("xor"),
        *(
            F.sum(F.when(F.col("what") == kind.value, F.col("count"))).alias(kind.name)
            for kind in RowKind
        ),
    )
    # A record that could not be read balances with nothing: its columns are null, as those of a
    # record of nulls are.
    differs = f"count != 0 OR high != 0 OR low != 0 OR xor != 0 OR {RowKind.MALFORMED.name} > 0"
    dirty = F.when(F.expr(differs), F.col("bucket"))
    whole = by_bucket.agg(
        F.collect_list(dirty).alias("dirty"),
        *(F.sum(kind.name).alias(kind.name) for kind in RowKind),
    ).first()
    assert whole is not None
    return Digest(dirty=tuple(whole.dirty), rows={kind: whole[kind.name] or 0 for kind in RowKind})


def _is(kinds: Iterable[RowKind]) -> Column:
    return F.col("what").isin([kind.value for kind in kinds])
