"""The classes that are judged on request: found, not found, and not judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.result import ReconciliationResult, violated_classes
from streamquake.harness.reconcile.shape import Shape
from tests.harness.reconcile.model import OutputRecord, SentRecord
from tests.harness.reconcile.test_reconcile import SHAPE

ALL = ("gap", "regression", "wrong_partition")
SHAPE_WITH_ALL = replace(SHAPE, partition="partition", also=ALL)
SENT = [SentRecord(key, seq, 0) for seq in range(1, 6) for key in "abc"]
RECEIVED = [
    OutputRecord(record.key, record.seq, 0, ord(record.key) % 2, at)
    for at, record in enumerate(SENT)
]


def reconcile_records(
    spark: SparkSession, received: Sequence[OutputRecord], shape: Shape = SHAPE_WITH_ALL
) -> ReconciliationResult:
    expected = spark.createDataFrame(SENT, "key string, seq bigint, amount bigint, status string")
    columns = "key string, seq bigint, amount bigint, partition int, offset bigint"
    return reconcile(expected, spark.createDataFrame(received, columns), shape)


def requested_counts(result: ReconciliationResult) -> dict[str, int | None]:
    return {name: result.counts[name] for name in ALL}


def test_unchanged_records_have_no_anomalies(spark: SparkSession) -> None:
    result = reconcile_records(spark, RECEIVED)

    assert requested_counts(result) == dict.fromkeys(ALL, 0)
    assert (violated_classes(result.counts), result.findings) == ((), ())


def test_each_class_is_found_with_its_count(spark: SparkSession) -> None:
    """Two records of a are lost, and the first of them is no gap; all records of b arrive twice; a
    record of c is in the wrong partition."""
    received = [
        record for record in RECEIVED if (record.key, record.seq) not in (("a", 1), ("a", 3))
    ]
    received += [
        record._replace(offset=90 + (record.seq or 0)) for record in RECEIVED if record.key == "b"
    ]
    received = [e._replace(partition=0) if (e.key, e.seq) == ("c", 4) else e for e in received]

    result = reconcile_records(spark, received)

    assert requested_counts(result) == {"gap": 1, "regression": 1, "wrong_partition": 1}
    assert violated_classes(result.counts) == ("lost", "duplicated", *ALL)
    by_class = {record.what: (record.where, record.detail) for record in result.findings}
    assert by_class["gap"] == (
        "partition 1, offset 9",
        {"key": "a", "seq": 4, "after": 2, "absent": 1},
    )
    assert by_class["regression"] == ("partition 0, offset 91", {"key": "b", "seq": 1, "before": 5})
    assert by_class["wrong_partition"] == (
        "partition 0, offset 11",
        {"key": "c", "seq": 4, "home": 1},
    )


@pytest.mark.nightly
def test_the_home_of_a_key_is_on_the_expected_side_if_that_is_a_topic(
    spark: SparkSession,
) -> None:
    """Most records of a are in partition 3, to which none was sent."""
    received = [e._replace(partition=3) if e.key == "a" and e.seq != 1 else e for e in RECEIVED]
    columns = "key string, seq bigint, amount bigint, at int"
    sent = spark.createDataFrame([(*e[:3], e.partition) for e in RECEIVED], columns)
    actual = spark.createDataFrame(received, f"{columns[:-6]}partition int, offset bigint")
    shape = replace(SHAPE_WITH_ALL, status=None, also=("wrong_partition",))

    by_actual_records = reconcile(sent, actual, shape)
    by_expected_partition = reconcile(sent, actual, replace(shape, expected_partition="at"))

    assert (
        by_actual_records.counts["wrong_partition"],
        by_expected_partition.counts["wrong_partition"],
    ) == (1, 4)


@pytest.mark.nightly
def test_of_several_partitions_with_equally_many_records_the_lowest_is_the_home(
    spark: SparkSession,
) -> None:
    received = [
        record._replace(partition=5 if record.seq in (1, 3) else 2)
        for record in RECEIVED
        if record.key == "a" and record.seq != 5
    ]

    result = reconcile_records(spark, received)

    homes = [f.detail["home"] for f in result.findings if f.what == "wrong_partition"]
    assert (result.counts["wrong_partition"], homes) == (2, [2, 2])


def test_a_class_that_cannot_be_judged_has_no_count(spark: SparkSession) -> None:
    no_order = replace(SHAPE_WITH_ALL, sequence=None, key=(), position=None, partition=None)

    assert requested_counts(reconcile_records(spark, RECEIVED, no_order)) == dict.fromkeys(ALL)
