"""One Spark session for all tests of a process: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.spark import spark_session, stop_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[2]", memory_mb=1024)
    yield session
    stop_spark(session)
