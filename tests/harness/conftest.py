"""The program as a function, and one Spark session for all tests of a process, because it takes
seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A quarter of the time is that of Java, which compiles each plan. Runs compile them, as do nightly
tests."""


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session of the process. It has the jars for Kafka only if container tests run, so that
    other runs download nothing."""
    if mutants_are_tested():
        yield session_of_all_mutants(small_session)
        return
    marks = {mark.name for item in request.session.items for mark in item.iter_markers()}
    settings = {} if "nightly" in marks else INTERPRETED
    session = small_session(spark_jars() if "container" in marks else (), settings)
    yield session
    stop_spark(session)


def small_session(
    jars: Sequence[Path] = (), settings: Mapping[str, str] = INTERPRETED
) -> SparkSession:
    return spark_session("local[2]", jars, memory_mb=1024, settings={**SMALL_DATA, **settings})


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
