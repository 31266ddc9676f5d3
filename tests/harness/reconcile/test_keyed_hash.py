"""Records that are crafted to collide are distinguished, whatever the key of the comparison."""

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


def rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & MASK


def mix_lane(lane: int) -> int:
    """Eight bytes as xxHash64 mixes them before it adds them to its state."""
    return rotate(lane * P2 & MASK, 31) * P1 & MASK


def unmix_lane(value: int) -> int:
    lane = rotate(value * pow(P1, -1, 1 << 64) & MASK, 64 - 31)
    return lane * pow(P2, -1, 1 << 64) & MASK


def lane_with_flipped_bit(bit: int, lane: bytes) -> bytes:
    """Eight bytes whose mixed lane differs in one bit from that of these."""
    return unmix_lane(mix_lane(int.from_bytes(lane, "little")) ^ (1 << bit)).to_bytes(8, "little")


@pytest.fixture(scope="module")
def colliding_texts() -> tuple[bytes, bytes]:
    """Two values with one xxHash64 under every seed. The bit in which the first lanes differ is
    moved to the top, where a multiplication by an odd number does not change it, and the second
    lanes differ in that bit too."""
    first, second = b"first ei", b"second e"
    return first + second, lane_with_flipped_bit(36, first) + lane_with_flipped_bit(63, second)


def frame(spark: SparkSession, *rows: tuple[Any, ...], schema: str) -> DataFrame:
    return spark.createDataFrame([*rows], schema)


def test_colliding_texts_are_two_texts_with_one_hash(
    spark: SparkSession, colliding_texts: tuple[bytes, bytes]
) -> None:
    rows_frame = frame(spark, *((text,) for text in colliding_texts), schema="text binary")
    for seed in ("", "one", "another"):
        assert rows_frame.select(F.xxhash64(F.lit(seed), "text")).distinct().count() == 1
    assert len(set(colliding_texts)) == 2


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("id long, value binary", lambda text: text),
        ("id long, value struct<of: binary>", lambda text: (text,)),
        ("id long, value array<binary>", lambda text: [b"x", text]),
    ],
)
def test_a_colliding_value_is_changed(
    spark: SparkSession, colliding_texts: tuple[bytes, bytes], schema: str, value: Any
) -> None:
    sent, received = (frame(spark, (1, value(text)), schema=schema) for text in colliding_texts)

    result = reconcile(sent, received, Shape(identity=("id",), compare=("value",)))

    assert result.counts["changed"] == 1


def test_a_colliding_key_is_lost_and_a_phantom(
    spark: SparkSession, colliding_texts: tuple[bytes, bytes]
) -> None:
    sent, received = (
        frame(spark, (text, 1), schema="key binary, value long") for text in colliding_texts
    )

    result = reconcile(sent, received, Shape(identity=("key",), compare=("value",)))

    assert (result.counts["lost"], result.counts["phantom"]) == (1, 1)


def test_texts_that_are_split_differently_have_different_hashes(spark: SparkSession) -> None:
    rows = [("a", "bc"), ("ab", "c"), ("", "abc"), (None, "abc"), ("abc", None), ("abc", "")]
    rows_frame = frame(spark, *rows, schema="one string, other string")

    hashes = rows_frame.select(keyed_hash(rows_frame, ("one", "other"), "key").alias("hash"))

    assert hashes.distinct().count() == len(rows)


@pytest.mark.parametrize("lowest", [1, 1_000])
def test_microseconds_within_a_value_change_its_hash(spark: SparkSession, lowest: int) -> None:
    rows_frame = spark.range(2).select(
        F.struct(F.timestamp_micros(F.col("id") * lowest).alias("at")).alias("value")
    )
    hashes = rows_frame.select(keyed_hash(rows_frame, ("value",), "key").alias("hash"))

    assert hashes.distinct().count() == 2


@pytest.mark.nightly
def test_every_comparison_has_a_key_of_its_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_frame = frame(spark, *((n,) for n in range(100)), schema="id long")
    shape = Shape(identity=("id",))
    keys: list[str] = []

    def recording_both_sides(*args: Any) -> DataFrame:
        keys.append(args[-1])
        return both_sides(*args)

    monkeypatch.setattr(reconciling, "both_sides", recording_both_sides)
    for _ in range(2):
        reconcile(rows_frame, rows_frame, shape)
    buckets = [
        both_sides(rows_frame, rows_frame, shape, BUCKETS, key)
        .select("bucket")
        .distinct()
        .collect()
        for key in keys
    ]

    assert len(set(keys)) == 2
    assert sorted(buckets[0]) != sorted(buckets[1])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sent", "received"),
    [([1, 1, 1, 1], [1, 1, 2, 2]), ([1, 2], [1, 1]), ([1, 1, 2, 2], [3, 3, 4, 4]), ([1], [1, 1])],
)
def test_copies_do_not_cancel_each_other_out(
    spark: SparkSession, sent: list[int], received: list[int]
) -> None:
    """All records share one bucket, so only the sums can distinguish them."""
    one, other = (
        frame(spark, *((n,) for n in side), schema="id long") for side in (sent, received)
    )

    digest = digest_of(both_sides(one, other, Shape(identity=("id",)), 1, random_key()))

    assert digest.dirty == (0,)


def test_no_bucket_of_equal_sides_is_compared_by_value(spark: SparkSession) -> None:
    rows = frame(spark, (1, "a"), (2, "b"), (2, "b"), schema="id long, value string")
    shape = Shape(identity=("id",), compare=("value",))

    digest = digest_of(both_sides(rows, rows, shape, 1, random_key()))

    assert digest.dirty == ()


def test_buckets_that_differ_are_compared_by_value(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All records have the same hash, so only the counts show a difference, and the values are
    compared."""
    monkeypatch.setattr(
        "streamquake.harness.reconcile.row_hashes.keyed_hash", lambda *args: F.lit(7).cast("bigint")
    )
    shape = Shape(identity=("id",), compare=("value",))
    sent = frame(spark, (1, "a"), (2, "b"), (3, "c"), schema="id long, value string")
    changed = frame(spark, (1, "a"), (2, "x"), schema="id long, value string")

    result = reconcile(sent, changed, shape)

    assert (result.counts["lost"], result.counts["changed"]) == (1, 1)
