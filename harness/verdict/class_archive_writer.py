"""Writes the class archive of Spark (`class_archive.py`), with the classes that a verdict needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.reconcile.class_archive import ensure_archive
from streamquake.harness.reconcile.spark_session import find_java, spark_session, stop_spark
from streamquake.harness.verdict.rehearsal import rehearse

EXPERIMENT = "kill-taskmanager-mid-checkpoint"
"""It has an output of each kind."""


def write_class_archive(show_message: Callable[[str], None]) -> None:
    """Write the archive unless it is there. Raises JavaMissing, ArchiveNotWritten, OSError, and
    what the rehearsal raises."""

    def write(archive: Path) -> None:
        show_message("Spark: writing its class archive, with which it starts in half the time")
        spark = spark_session("local[2]", archive_to=archive)
        rehearse(load_experiment(EXPERIMENT), spark)
        stop_spark(spark)

    ensure_archive(find_java(), write)
