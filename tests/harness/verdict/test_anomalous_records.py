"""The copy that an anomaly is attributed to: the wrong one, or the last one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reconcile import reconciled
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.verdict.anomalous_records import anomalous_records
from streamquake.harness.verdict.expected_output import STAMP
from streamquake.reports.record.outcome import class_of

SHAPE = Shape(
    identity=("key",), compare=("amount",), status="status", lane=("lane",), position="offset"
)
OK, MAYBE, FAILED = "acknowledged", "unknown", "failed"
Sends = list[tuple[int | None, str]]
Copies = list[tuple[int | None, str, int, int]]
"""(amount, lane, offset, stamp)"""

CHANGED: dict[str, tuple[Sends, Copies]] = {
    "first": ([(1, OK)], [(2, "wrong", 0, 5), (1, "right", 0, 9)]),
    "last": ([(1, OK)], [(1, "right", 0, 5), (2, "wrong", 0, 9)]),
    "two": ([(1, OK)], [(2, "also wrong", 0, 5), (3, "wrong", 0, 9)]),
    "null": ([(None, OK)], [(1, "wrong", 0, 5), (None, "right", 0, 9)]),
    "refused": ([(1, OK), (2, FAILED)], [(2, "wrong", 0, 5), (1, "right", 0, 9)]),
    "the second 1 is there instead of a 2": (
        [(1, OK), (2, OK), (2, OK)],
        [(1, "right", 0, 5), (1, "wrong", 0, 6), (2, "right", 0, 9)],
    ),
    "a value that was never sent is worse than a copy too many": (
        [(1, OK), (1, OK)],
        [(2, "wrong", 0, 4), *((1, f"copy {n}", n, 5 + n) for n in range(3))],
    ),
    "the value of an unknown send is there instead of the acknowledged one": (
        [(1, OK), (2, MAYBE)],
        [(2, "wrong", 0, 5)],
    ),
}


def found(
    spark: SparkSession, records: Mapping[str, tuple[Sends, Copies]], *, stamped: bool = True
) -> list[tuple[str, str, str | None]]:
    """(class, key, lane) of each anomalous record."""
    sent = [(key, *send) for key, (sends, _) in records.items() for send in sends]
    written = [(key, *copy) for key, (_, copies) in records.items() for copy in copies]
    columns = f"key string, amount int, lane string, offset int, {STAMP} bigint"
    expected = spark.createDataFrame(sent, "key string, amount int, status string")
    actual = spark.createDataFrame(written, columns)
    actual = actual if stamped else actual.drop(STAMP)
    with reconciled(expected, actual, SHAPE, record_estimate=10) as result:
        assert result.differences is not None
        classes = {class_of(finding) for finding in result.findings}
        rows = anomalous_records(result.differences, classes).collect()
        return sorted((row.what, row.key, row.lane) for row in rows)


@pytest.mark.nightly
def test_changed_is_the_copy_that_is_wrong(spark: SparkSession) -> None:
    rows = found(spark, CHANGED)
    wrong = {key: lane for what, key, lane in rows if what == "changed"}
    assert wrong == dict.fromkeys(CHANGED, "wrong")
    assert len([what for what, *_ in rows if what == "changed"]) == len(CHANGED)


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("stamped", [True, False])
def test_duplicated_are_the_copies_that_were_written_last(
    spark: SparkSession, stamped: bool
) -> None:
    """By their stamps; of equal stamps, or without stamps, by their positions."""
    rows = found(
        spark,
        {
            "lost": ([(1, OK)], []),
            "refused": ([(1, FAILED)], [(1, "a", 0, 5)]),
            "three": ([(1, OK)], [(1, "a", 7, 7), (1, "b", 1, 9), (1, "c", 2, 5)]),
            "together": ([(1, OK)], [(1, "a", 7, 5), (1, "b", 2, 5)]),
        },
        stamped=stamped,
    )
    assert rows == [
        ("duplicated", "three", "a"),
        ("duplicated", "three", "b" if stamped else "c"),
        ("duplicated", "together", "a"),
        ("lost", "lost", None),
        ("phantom", "refused", "a"),
    ]
