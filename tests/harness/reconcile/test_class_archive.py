"""The class archive of Spark's virtual machine: one for each Java, used where it is there."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.reconcile import spark_session
from streamquake.harness.reconcile.class_archive import (
    PREFIX,
    ArchiveNotWritten,
    ensure_archive,
    options_to_use_archive,
    options_to_write_archive,
)


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the archives."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "streamquake" / "sets"


@pytest.fixture
def java(tmp_path: Path) -> Path:
    command = tmp_path / "java"
    command.write_text("17", encoding="utf-8")
    return command


def write(archive: Path) -> None:
    archive.write_text("classes", encoding="utf-8")


def test_an_archive_is_written_once_and_used_from_then_on(sets: Path, java: Path) -> None:
    written: list[Path] = []

    def write_and_count(archive: Path) -> None:
        write(archive)
        written.append(archive)

    assert options_to_use_archive(str(java)) == []
    ensure_archive(str(java), write_and_count)
    ensure_archive(str(java), write_and_count)

    assert len(written) == 1
    (archive,) = sets.glob(f"{PREFIX}*/*.jsa")
    assert f"-XX:SharedArchiveFile={archive}" in options_to_use_archive(str(java))
    assert "-Xshare:auto" in options_to_use_archive(str(java)), "another Java must ignore it"


@pytest.mark.usefixtures("sets")
def test_another_java_does_not_use_the_archive(java: Path) -> None:
    ensure_archive(str(java), write)
    java.write_text("a later version", encoding="utf-8")

    assert options_to_use_archive(str(java)) == []


def test_an_archive_that_could_not_be_written_is_not_used(sets: Path, java: Path) -> None:
    def fail(archive: Path) -> None:
        write(archive)
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        ensure_archive(str(java), fail)
    with pytest.raises(ArchiveNotWritten):
        ensure_archive(str(java), lambda archive: None)

    assert options_to_use_archive(str(java)) == []
    assert not [*sets.glob(f"{PREFIX}*")]


def test_the_beginning_of_an_archive_is_not_used_and_is_replaced(sets: Path, java: Path) -> None:
    """As after a loss of power, or an interrupted copy of the cache. Java would crash with it."""
    ensure_archive(str(java), write)
    (archive,) = sets.glob(f"{PREFIX}*/*.jsa")
    archive.write_text("cla", encoding="utf-8")

    assert options_to_use_archive(str(java)) == []
    ensure_archive(str(java), write)
    assert options_to_use_archive(str(java))


@pytest.mark.parametrize("folder", ["/" + "x" * 1000, None])
def test_a_cache_that_cannot_be_read_has_no_archive(
    java: Path, monkeypatch: pytest.MonkeyPatch, folder: str | None
) -> None:
    """None: the user has no home."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    if folder is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", folder)

    assert options_to_use_archive(str(java)) == []


def test_archives_of_packages_that_are_gone_are_removed(sets: Path, java: Path) -> None:
    gone, kept = sets / f"{PREFIX}gone", sets / f"{PREFIX}kept"
    for folder, packages in ((gone, sets / "missing"), (kept, sets)):
        folder.mkdir(parents=True)
        (folder / "jars").write_text(str(packages), encoding="utf-8")

    ensure_archive(str(java), write)

    assert not gone.exists()
    assert kept.is_dir()


def test_the_options_to_write_name_the_file(tmp_path: Path) -> None:
    assert f"-XX:ArchiveClassesAtExit={tmp_path}" in options_to_write_archive(tmp_path)


def test_the_path_of_an_archive_may_have_blanks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the home of a user may. Spark splits the options as a shell does."""
    monkeypatch.setattr(spark_session, "_start", lambda conf, folder: conf)
    archive = tmp_path / "it's a cache" / "spark.jsa"

    conf: Any = spark_session.spark_session("local[1]", archive_to=archive)

    options = shlex.split(conf.get("spark.driver.extraJavaOptions"))
    assert f"-XX:ArchiveClassesAtExit={archive}" in options


@pytest.mark.parametrize("before", [None, "/opt/hadoop/*"])
def test_jars_are_behind_those_of_spark_and_before_all_others(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """Those of a Hadoop on this machine may be older. Its `spark-env.sh` would replace the list."""
    environments = []
    monkeypatch.setattr(
        spark_session, "_start", lambda conf, folder: environments.append(dict(os.environ))
    )
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # as a session does for all later ones
    monkeypatch.delenv("SPARK_ENV_LOADED", raising=False)
    monkeypatch.delenv("SPARK_DIST_CLASSPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("SPARK_DIST_CLASSPATH", before)
    unchanged = dict(os.environ)

    spark_session.spark_session("local[1]", [Path("/one.jar"), Path("/two.jar")])

    (environment,) = environments
    parts = ["/one.jar", "/two.jar", *([before] if before else [])]
    assert environment["SPARK_DIST_CLASSPATH"] == os.pathsep.join(parts)
    assert environment["SPARK_ENV_LOADED"]
    assert dict(os.environ) == unchanged
