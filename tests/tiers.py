"""The tiers of the tests: fast, spark, container and nightly (CONTRIBUTING.md describes them).

A test belongs to the tier of its marker, and without a marker to the fast tier; those marked `slow`
or `process` run with the tier of Spark. A test of the fast tier, or a slow one, that starts Spark
fails, so that what needs no Java is known.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
WITH_SPARK = ("process", "spark", "container", "nightly")
REFUSAL = "a test without Spark starts it; mark the test with pytest.mark.spark"
JAVA = """\
#!/bin/sh
case "$*" in
*org.apache.spark*)
    echo "{refusal}" | tee -a "{log}"
    exit 1 ;;
esac
exec "{java}" "$@"
"""
"""Runs Java for all programs but Spark. It is a program, not a patch, because it must also reach
the processes that a test starts."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the shared Spark session, so that a run can leave them out; and of
    tests marked `nightly_after(N)` those with other parameters than the first N."""
    collected: Counter[str] = Counter()
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if first := item.get_closest_marker("nightly_after"):
            test = item.nodeid.partition("[")[0]
            collected[test] += 1
            if collected[test] > first.args[0]:
                item.add_marker("nightly")


def others_nightly(values: Iterable[T], always: Collection[T]) -> list[Any]:
    """Parameters of which `make test` runs those in `always`, and `make nightly` all."""
    return [
        value if value in always else pytest.param(value, marks=pytest.mark.nightly)
        for value in values
    ]


def may_start_spark(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(tier) for tier in WITH_SPARK)


@pytest.fixture(scope="session")
def home_without_spark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of Java whose `java` refuses to run Spark, and writes each attempt to a log."""
    home = tmp_path_factory.mktemp("without-spark")
    program = home / "bin" / "java"
    program.parent.mkdir()
    java = shutil.which("java") or "java"
    program.write_text(JAVA.format(refusal=REFUSAL, log=home / "log", java=java), encoding="utf-8")
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def without_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """In fast and slow tests Spark does not start, and no write waits for the disk."""
    if may_start_spark(request.node):
        yield
        return
    home: Path = request.getfixturevalue("home_without_spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(home))
        # A flush protects from a crash of the machine, which no test can observe. While other
        # processes write, each takes up to 0.1 s.
        patch.setattr(os, "fsync", lambda file: None)
        yield
    log = home / "log"
    if log.exists():
        log.unlink()
        pytest.fail(REFUSAL)
