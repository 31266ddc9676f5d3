"""The class archive, written by one virtual machine of Spark and used by the next one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streamquake.cluster.images.build import spark_jars

SHARED = "source: shared objects file (top)"
"""What Java notes of a class that it took from the archive."""
MADE_LATER = re.compile(r"Lambda|GeneratedClass").search
"""Classes that each virtual machine makes itself."""
WRITE = """
from streamquake.harness.verdict.class_archive_writer import write_class_archive
write_class_archive(print)
"""
USE = """
import sys
from pathlib import Path
from streamquake.harness.reconcile.spark_session import spark_session, stop_spark
session = spark_session("local[1]", [Path(jar) for jar in sys.argv[1:]])
print(session.range(3).count())
stop_spark(session)
"""


@pytest.mark.nightly
def test_a_session_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    log = tmp_path / "classes.log"
    home = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    written = subprocess.run(
        [sys.executable, "-c", WRITE], env=home, capture_output=True, text=True, check=True
    )
    logged = {**home, "JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={log}"}
    use = [sys.executable, "-c", USE, *map(str, spark_jars())]
    subprocess.run(use, env=logged, capture_output=True, check=True)

    assert "writing its class archive" in written.stdout
    loaded = [line for line in log.read_text(encoding="utf-8").splitlines() if " source: " in line]
    of_spark = [line for line in loaded if " org.apache.spark." in line and not MADE_LATER(line)]
    shared = [line for line in of_spark if SHARED in line]
    assert len(of_spark) > 2_000
    assert len(shared) > 0.95 * len(of_spark), f"{len(shared):,} of {len(of_spark):,} classes"
