"""One Spark session for all tests of a process: only one can be, and it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.cluster.images.build import spark_jars
from streamquake.harness.reconcile.spark_session import spark_session, stop_spark
from tests.mutation.spark_in_forks import mutants_are_tested, session_of_all_mutants

SMALL_DATA = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
"""Of a few hundred rows the planning is the work: a fifth of it is for tasks without rows."""


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Reads Kafka too where container tests run; without them no jar has to be fetched."""
    if mutants_are_tested():
        yield session_of_all_mutants(small_session)
        return
    contained = any(item.get_closest_marker("container") for item in request.session.items)
    session = small_session(spark_jars() if contained else ())
    yield session
    stop_spark(session)


def small_session(jars: Sequence[Path] = ()) -> SparkSession:
    return spark_session("local[2]", jars, memory_mb=1024, settings=SMALL_DATA)
