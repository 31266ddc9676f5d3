"""The Spark session that the tests of all mutants share: every fork of the process can use it."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession

from tests.mutation.spark_in_forks import keep_in_forks


def test_forks_and_their_parent_use_one_session(spark: SparkSession) -> None:
    keep_in_forks(spark)
    shared_frame = spark.range(3)
    for _ in range(2):
        assert os.waitstatus_to_exitcode(os.waitpid(fork_and_count(spark, shared_frame), 0)[1]) == 0
        assert shared_frame.count() == 3


def fork_and_count(spark: SparkSession, shared_frame: DataFrame) -> int:
    """Start a process that counts a frame of its parent and one of its own; returns its id."""
    if (process := os.fork()) == 0:
        failed = True
        try:
            failed = (shared_frame.count(), spark.range(5).count()) != (3, 5)
        finally:
            os._exit(failed)
    return process
