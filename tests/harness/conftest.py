"""One Spark session for all tests of a process: only one can be, and it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streamquake.cluster.images.build import spark_jars
from streamquake.harness.spark import spark_session, stop_spark


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Reads Kafka too where container tests run; without them no jar has to be fetched."""
    contained = any(item.get_closest_marker("container") for item in request.session.items)
    session = spark_session("local[2]", spark_jars() if contained else (), memory_mb=1024)
    yield session
    stop_spark(session)
