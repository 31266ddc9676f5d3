"""The digest: which buckets of records differ at all between the two sides.

Each side's rows fall into buckets by identity, and every bucket keeps a signed count, a signed sum
and an xor of the rows' hashes. No row is moved: each task hands on one line per bucket. A bucket
that balances in all three is clean; xor alone would miss an even number of repeats, the sum alone
what compensates. Anti-entropy repair and Merkle trees rest on the same idea.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SUMMED_BITS = 40
"""Bits of a hash that are summed, so that 2**23 rows of a bucket cannot overflow the sum."""


@dataclass(frozen=True, kw_only=True)
class Digest:
    """What one pass over both sides found."""

    dirty: tuple[int, ...]
    acknowledged: int
    unknown: int
    actual: int
    malformed: int


def digest_of(rows: DataFrame) -> Digest:
    """One pass over the rows of `both_sides`. Sends that failed count as never sent."""
    sent = rows.where("failed = 0").withColumn("sign", F.expr("ok + unknown - here"))
    part = F.shiftright("values", 64 - SUMMED_BITS)
    by_bucket = sent.groupBy("bucket").agg(
        F.sum("sign").alias("count"),
        F.sum(F.col("sign") * part).alias("sum"),
        F.bit_xor("values").alias("xor"),
        *(F.sum(name).alias(name) for name in ("ok", "unknown", "here", "malformed")),
    )
    dirty = F.when(F.expr("count != 0 OR sum != 0 OR xor != 0"), F.col("bucket"))
    whole = by_bucket.agg(
        F.collect_list(dirty).alias("dirty"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name)
          for name in ("ok", "unknown", "here", "malformed")),
    ).first()  # fmt: skip
    assert whole is not None
    return Digest(
        dirty=tuple(whole.dirty),
        acknowledged=whole.ok,
        unknown=whole.unknown,
        actual=whole.here,
        malformed=whole.malformed,
    )
