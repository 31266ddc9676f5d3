"""A folder of records is read literally, also where Spark would read its name as a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.stored_output import StoredOutput


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize("name", ["r[1]", "r{1,2}", "r?", "r*", "r\\1"])
def test_records_are_read_from_their_own_folder_alone(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    for folder, values in (("r1", "other"), ("r2", "other"), (name, "own")):
        for file in ("part-1", f"part-{name}"):
            written = tmp_path / folder / "out" / file
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(f'{{"a": "{values} {file}"}}\n')
        stored = StoredOutput(path=tmp_path / folder / "data")
        read_files(spark, tmp_path / folder / "out", into=stored, source="/out")

    rows = StoredOutput(path=tmp_path / name / "data").frame(spark).collect()

    assert sorted(row["value"] for row in rows) == sorted(
        f'{{"a": "own {file}"}}' for file in ("part-1", f"part-{name}")
    )
