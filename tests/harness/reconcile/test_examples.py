"""Examples show the values of a record that violates a promise."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.examples import MAX_TEXT, clip
from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.shape import Shape


def test_a_long_text_is_shown_by_its_beginning_and_its_length() -> None:
    shown = clip("x" * 900_000)

    assert shown == "x" * MAX_TEXT + "… (900,000 characters)"


def test_short_values_are_shown_in_full() -> None:
    assert [clip(value) for value in ("abc", 17, None)] == ["abc", 17, None]


def test_years_beyond_the_limits_of_python_and_bytes_are_shown_as_text(spark: SparkSession) -> None:
    sent = spark.sql(
        "SELECT DATE'+12026-01-02' AS day, X'FF00' AS bytes, "
        "TIMESTAMP'0000-01-02 03:04:05.5Z' AS at, array(DATE'+12026-01-02') AS days"
    )
    received = sent.selectExpr("day", "bytes", "at + INTERVAL 1 SECOND AS at", "days")
    shape = Shape(identity=("day", "bytes"), compare=("at", "days"))

    (finding,) = reconcile(sent, received, shape).findings

    days = '{"days":["+12026-01-02"]}'
    assert (finding.what, finding.detail) == (
        "changed",
        {
            "day": "+12026-01-02",
            "bytes": "/wA=",
            "sent": [{"at": "0000-01-02 03:04:05.5", "days": days}],
            "seen": [{"at": "0000-01-02 03:04:06.5", "days": days}],
        },
    )


def test_numbers_that_json_lacks_are_shown_as_text() -> None:
    """Of a run they would be in its results, which other programs could not read."""
    shown = [clip(value) for value in (float("nan"), float("-inf"), 1.5)]

    assert shown == ["nan", "-inf", 1.5]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_an_identity_that_is_no_number_has_its_records(spark: SparkSession, kind: str) -> None:
    """In Python NaN does not equal itself."""
    sent = spark.sql(f"SELECT CAST('NaN' AS {kind}) AS key, 1 AS amount")
    received = spark.sql(f"SELECT CAST('NaN' AS {kind}) AS key, 2 AS amount, 7 AS offset")
    shape = Shape(identity=("key",), compare=("amount",), position="offset")

    (finding,) = reconcile(sent, received, shape).findings

    assert (finding.what, finding.where) == ("changed", "offset 7")
    assert str(finding.detail["key"]) == "nan"
    assert (finding.detail["sent"], finding.detail["seen"]) == ([{"amount": 1}], [{"amount": 2}])


def test_texts_that_begin_as_nested_values_do_are_shown_as_they_are(spark: SparkSession) -> None:
    texts = ["o:" + "[" * 100_000, "o:[1, true]", 'o:{"a": {"b": 1.5}}', 'o:["t:soon"]', "o:{"]
    columns = "key int, text string"
    sent = spark.createDataFrame([(key, "x") for key in range(len(texts))], columns)
    received = spark.createDataFrame(list(enumerate(texts)), columns)

    result = reconcile(sent, received, Shape(identity=("key",), compare=("text",)))

    seen = [finding.detail["seen"] for finding in result.findings]
    assert seen == [[{"text": clip(text)}] for text in texts]


def test_an_identity_with_many_copies_hides_no_record_of_another_example(
    spark: SparkSession,
) -> None:
    """Of each the first copies are shown, by their places."""
    columns = "key string, amount int"
    sent = spark.createDataFrame([("a", 1), ("b", 2)], columns)
    copies = [("a", 1, offset) for offset in range(3000, 0, -1)]
    received = spark.createDataFrame([*copies, ("b", 3, 0)], f"{columns}, offset int")
    shape = Shape(identity=("key",), compare=("amount",), position="offset")

    many, one = reconcile(sent, received.coalesce(1), shape).findings

    assert (many.what, many.where) == ("duplicated", "offset 1; offset 2; offset 3; offset 4")
    assert (one.what, one.where) == ("changed", "offset 0")
    assert one.detail["seen"] == [{"amount": 3}]
