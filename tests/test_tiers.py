"""The guard of the fast tier: Spark does not start there, and other programs of Java do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from streamquake.harness.reconcile.spark_session import JavaMissing, spark_session
from tests.tiers import REFUSAL


def run_java(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [f"{os.environ['JAVA_HOME']}/bin/java", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_session_of_spark_does_not_start(home_without_spark: Path) -> None:
    with pytest.raises(JavaMissing, match=REFUSAL):
        spark_session()

    log = home_without_spark / "log"
    assert REFUSAL in log.read_text("utf-8")
    log.unlink()  # the test would fail for its attempt


def test_another_program_of_java_starts(home_without_spark: Path) -> None:
    assert run_java("-version").returncode == 0
    assert not (home_without_spark / "log").exists()
