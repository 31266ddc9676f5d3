"""Records that were made to have one hash are told apart, whatever the key of the comparison."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile import reconcile as reconciling
from streamquake.harness.reconcile.digest import digest_of
from streamquake.harness.reconcile.reconcile import BUCKETS, reconcile
from streamquake.harness.reconcile.row_hashes import both_sides, keyed_hash, random_key
from streamquake.harness.reconcile.shape import Shape

P1, P2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
MASK = (1 << 64) - 1


def rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & MASK


def mixed(lane: int) -> int:
    """What xxHash64 makes of eight bytes before it takes them into its state."""
    return rotated(lane * P2 & MASK, 31) * P1 & MASK


def unmixed(value: int) -> int:
    lane = rotated(value * pow(P1, -1, 1 << 64) & MASK, 64 - 31)
    return lane * pow(P2, -1, 1 << 64) & MASK


def lane_apart_by(bit: int, lane: bytes) -> bytes:
    """Eight bytes whose mixed lane differs in one bit from that of these."""
    return unmixed(mixed(int.from_bytes(lane, "little")) ^ (1 << bit)).to_bytes(8, "little")


@pytest.fixture(scope="module")
def twins() -> tuple[bytes, bytes]:
    """Two values with one xxHash64 under every seed: the bit in which the first lanes differ is
    moved to the top, where multiplying by an odd number leaves it alone, and the second lanes
    differ in that bit too."""
    first, second = b"first ei", b"second e"
    return first + second, lane_apart_by(36, first) + lane_apart_by(63, second)


def frame(spark: SparkSession, *rows: tuple[Any, ...], schema: str) -> DataFrame:
    return spark.createDataFrame([*rows], schema)


def test_the_twins_are_two_texts_with_one_hash(
    spark: SparkSession, twins: tuple[bytes, bytes]
) -> None:
    made = frame(spark, *((text,) for text in twins), schema="text binary")
    for seed in ("", "one", "another"):
        assert made.select(F.xxhash64(F.lit(seed), "text")).distinct().count() == 1
    assert len(set(twins)) == 2


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("id long, value binary", lambda text: text),
        ("id long, value struct<of: binary>", lambda text: (text,)),
        ("id long, value array<binary>", lambda text: [b"x", text]),
    ],
)
def test_a_text_for_its_twin_is_changed(
    spark: SparkSession, twins: tuple[bytes, bytes], schema: str, value: Any
) -> None:
    sent, seen = (frame(spark, (1, value(text)), schema=schema) for text in twins)

    found = reconcile(sent, seen, Shape(identity=("id",), compare=("value",)))

    assert found.counts["changed"] == 1


def test_a_key_for_its_twin_is_lost_and_a_phantom(
    spark: SparkSession, twins: tuple[bytes, bytes]
) -> None:
    sent, seen = (frame(spark, (text, 1), schema="key binary, value long") for text in twins)

    found = reconcile(sent, seen, Shape(identity=("key",), compare=("value",)))

    assert (found.counts["lost"], found.counts["phantom"]) == (1, 1)


def test_a_text_does_not_run_over_into_the_next(spark: SparkSession) -> None:
    rows = [("a", "bc"), ("ab", "c"), ("", "abc"), (None, "abc"), ("abc", None), ("abc", "")]
    made = frame(spark, *rows, schema="one string, other string")

    hashes = made.select(keyed_hash(made, ("one", "other"), "key").alias("hash"))

    assert hashes.distinct().count() == len(rows)


@pytest.mark.parametrize("lowest", [1, 1_000])
def test_microseconds_within_a_value_count(spark: SparkSession, lowest: int) -> None:
    made = spark.range(2).select(
        F.struct(F.timestamp_micros(F.col("id") * lowest).alias("at")).alias("value")
    )
    hashes = made.select(keyed_hash(made, ("value",), "key").alias("hash"))

    assert hashes.distinct().count() == 2


def test_every_comparison_has_a_key_of_its_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = frame(spark, *((n,) for n in range(100)), schema="id long")
    shape = Shape(identity=("id",))
    keys: list[str] = []

    def kept(*args: Any) -> DataFrame:
        keys.append(args[-1])
        return both_sides(*args)

    monkeypatch.setattr(reconciling, "both_sides", kept)
    for _ in range(2):
        reconcile(made, made, shape)
    buckets = [
        both_sides(made, made, shape, BUCKETS, key).select("bucket").distinct().collect()
        for key in keys
    ]

    assert len(set(keys)) == 2
    assert sorted(buckets[0]) != sorted(buckets[1])


@pytest.mark.parametrize(
    ("sent", "seen"),
    [([1, 1, 1, 1], [1, 1, 2, 2]), ([1, 2], [1, 1]), ([1, 1, 2, 2], [3, 3, 4, 4]), ([1], [1, 1])],
)
def test_repeats_do_not_cancel_each_other_out(
    spark: SparkSession, sent: list[int], seen: list[int]
) -> None:
    """One bucket for all, so that nothing but the sums can tell."""
    one, other = (frame(spark, *((n,) for n in side), schema="id long") for side in (sent, seen))

    digest = digest_of(both_sides(one, other, Shape(identity=("id",)), 1, random_key()))

    assert digest.dirty == (0,)


def test_buckets_that_differ_are_compared_by_value(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hash that is always the same hides a difference where all else balances, and no other."""
    monkeypatch.setattr(
        "streamquake.harness.reconcile.row_hashes.keyed_hash", lambda *args: F.lit(7).cast("bigint")
    )
    shape = Shape(identity=("id",), compare=("value",))
    sent = frame(spark, (1, "a"), (2, "b"), (3, "c"), schema="id long, value string")
    changed = frame(spark, (1, "a"), (2, "x"), schema="id long, value string")

    found = reconcile(sent, changed, shape)

    assert (found.counts["lost"], found.counts["changed"]) == (1, 1)
