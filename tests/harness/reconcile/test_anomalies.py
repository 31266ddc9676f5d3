"""The classes that must be asked for: found, not found, and not judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.result import ReconciliationResult, violated_classes
from streamquake.harness.reconcile.shape import Shape
from tests.harness.reconcile.model import BatchWindow, Sent
from tests.harness.reconcile.test_reconcile import SHAPE

ALL = ("gap", "regression", "wrong_partition")
ASKED = replace(SHAPE, partition="partition", also=ALL)
SENT = [Sent(key, seq, 0) for seq in range(1, 6) for key in "abc"]
SEEN = [BatchWindow(each.key, each.seq, 0, ord(each.key) % 2, at) for at, each in enumerate(SENT)]


def judged(
    spark: SparkSession, seen: Sequence[BatchWindow], shape: Shape = ASKED
) -> ReconciliationResult:
    expected = spark.createDataFrame(SENT, "key string, seq bigint, amount bigint, status string")
    columns = "key string, seq bigint, amount bigint, partition int, offset bigint"
    return reconcile(expected, spark.createDataFrame(seen, columns), shape)


def asked_for(result: ReconciliationResult) -> dict[str, int | None]:
    return {name: result.counts[name] for name in ALL}


def test_nothing_is_found_in_what_is_as_it_was_sent(spark: SparkSession) -> None:
    result = judged(spark, SEEN)

    assert asked_for(result) == dict.fromkeys(ALL, 0)
    assert (violated_classes(result.counts), result.findings) == ((), ())


def test_each_is_found_by_its_name_and_count(spark: SparkSession) -> None:
    """Two of a are lost, and the first is no gap; b comes again; a record of c is astray."""
    seen = [each for each in SEEN if (each.key, each.seq) not in (("a", 1), ("a", 3))]
    seen += [each._replace(offset=90 + (each.seq or 0)) for each in SEEN if each.key == "b"]
    seen = [e._replace(partition=0) if (e.key, e.seq) == ("c", 4) else e for e in seen]

    result = judged(spark, seen)

    assert asked_for(result) == {"gap": 1, "regression": 1, "wrong_partition": 1}
    assert violated_classes(result.counts) == ("lost", "duplicated", *ALL)
    recorded = {each.what: (each.where, each.detail) for each in result.findings}
    assert recorded["gap"] == (
        "partition 1, offset 9",
        {"key": "a", "seq": 4, "after": 2, "absent": 1},
    )
    assert recorded["regression"] == ("partition 0, offset 91", {"key": "b", "seq": 1, "before": 5})
    assert recorded["wrong_partition"] == (
        "partition 0, offset 11",
        {"key": "c", "seq": 4, "home": 1},
    )


def test_the_home_of_a_key_is_on_the_expected_side_if_that_is_a_topic(
    spark: SparkSession,
) -> None:
    """Most of a stand in partition 3, where none of it was sent."""
    seen = [e._replace(partition=3) if e.key == "a" and e.seq != 1 else e for e in SEEN]
    columns = "key string, seq bigint, amount bigint, at int"
    sent = spark.createDataFrame([(*e[:3], e.partition) for e in SEEN], columns)
    actual = spark.createDataFrame(seen, f"{columns[:-6]}partition int, offset bigint")
    shape = replace(ASKED, status=None, also=("wrong_partition",))

    by_most = reconcile(sent, actual, shape)
    by_sent = reconcile(sent, actual, replace(shape, expected_partition="at"))

    assert (by_most.counts["wrong_partition"], by_sent.counts["wrong_partition"]) == (1, 4)


def test_what_cannot_be_judged_is_not_counted(spark: SparkSession) -> None:
    no_order = replace(ASKED, sequence=None, key=(), position=None, partition=None)

    assert asked_for(judged(spark, SEEN, no_order)) == dict.fromkeys(ALL)
