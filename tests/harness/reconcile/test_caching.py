"""Frames that are used more than once are computed once, and kept for a block only."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile import caching
from streamquake.harness.reconcile.caching import materialized, persisted


def numbers(spark: SparkSession) -> DataFrame:
    """Rows with a number that is drawn anew whenever they are computed."""
    return spark.range(100).withColumn("drawn", F.uuid())


def kept_rdds(spark: SparkSession) -> int:
    context: Any = spark.sparkContext
    return int(context._jsc.getPersistentRDDs().size())


def operators(frame: DataFrame) -> int:
    rows: Any = frame
    return len(rows._jdf.queryExecution().optimizedPlan().toString().splitlines())


def test_materialized_rows_have_no_plan_and_are_released(spark: SparkSession) -> None:
    before = kept_rdds(spark)

    with materialized(numbers(spark)) as rows:
        first, second = rows.collect(), rows.collect()
        assert kept_rdds(spark) == before + 1
        assert operators(rows) == 1

    assert first == second
    assert len(first) == 100
    assert kept_rdds(spark) == before


def test_materialized_rows_are_released_after_an_error(spark: SparkSession) -> None:
    before = kept_rdds(spark)

    with pytest.raises(ZeroDivisionError), materialized(numbers(spark)):
        raise ZeroDivisionError

    assert kept_rdds(spark) == before


def test_where_executors_may_be_lost_the_plan_is_kept(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "runs_here", lambda session: False)

    with materialized(numbers(spark)) as rows:
        assert operators(rows) > 1
        assert rows.collect() == rows.collect()
    assert not rows.is_cached


def test_persisted_rows_are_computed_once(spark: SparkSession) -> None:
    with persisted(numbers(spark)) as rows:
        assert rows.collect() == rows.collect()
    assert not rows.is_cached
