"""The session that the tests of all mutants share: every fork of the process can use it."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession

from tests.mutation.spark_in_forks import keep_in_forks


def test_forks_and_their_parent_use_one_session(spark: SparkSession) -> None:
    keep_in_forks(spark)
    kept = spark.range(3)
    for _ in range(2):
        assert os.waitstatus_to_exitcode(os.waitpid(forked(spark, kept), 0)[1]) == 0
        assert kept.count() == 3


def forked(spark: SparkSession, kept: DataFrame) -> int:
    """A process that asks for what its parent has made and for something of its own."""
    if (process := os.fork()) == 0:
        failed = True
        try:
            failed = (kept.count(), spark.range(5).count()) != (3, 5)
        finally:
            os._exit(failed)
    return process
