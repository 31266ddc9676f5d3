"""The program as a function, and one Spark session for all tests of a process, because it takes
seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.cluster.images.build import spark_jars
from streamquake.harness.cli import program
from streamquake.harness.cli.guard import guarded
from streamquake.harness.reconcile.spark_session import spark_session, stop_spark
from tests.mutation.spark_in_forks import mutants_are_tested, session_of_all_mutants

RunCommand = Callable[..., tuple[int, str, str]]
SMALL_DATA = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
"""With a few hundred rows most of the time is planning, a fifth of it for tasks without rows."""


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session of the process. It has the jars for Kafka only if container tests run, so that
    other runs download nothing."""
    if mutants_are_tested():
        yield session_of_all_mutants(small_session)
        return
    has_container_tests = any(
        item.get_closest_marker("container") for item in request.session.items
    )
    session = small_session(spark_jars() if has_container_tests else ())
    yield session
    stop_spark(session)


def small_session(jars: Sequence[Path] = ()) -> SparkSession:
    return spark_session("local[2]", jars, memory_mb=1024, settings=SMALL_DATA)


@pytest.fixture
def run_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RunCommand:
    """Run the program in an empty folder: (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CI", "1")

    def run(*argv: str) -> tuple[int, str, str]:
        status = guarded(program, argv)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
