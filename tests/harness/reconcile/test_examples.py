"""Examples show the values of a record that violates a promise."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamquake.harness.reconcile.examples import MAX_COPIES, MAX_TEXT, clip
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


def test_very_many_copies_of_a_record_hide_no_other_example(spark: SparkSession) -> None:
    sent = spark.sql("SELECT * FROM VALUES (1L, 'a'), (2L, 'b') AS t(id, v)")
    received = spark.sql(
        "SELECT 1L AS id, 'a' AS v FROM range(3000) UNION ALL SELECT 2L, 'c'"
    ).coalesce(1)

    findings = reconcile(sent, received, Shape(identity=("id",), compare=("v",))).findings

    by_class = {finding.what: finding.detail for finding in findings}
    assert by_class["changed"] == {"id": 2, "sent": [{"v": "b"}], "seen": [{"v": "c"}]}
    assert by_class["duplicated"]["extra_copies"] == 2999
    assert len(by_class["duplicated"]["seen"]) == MAX_COPIES
