"""The records of one output as they were read: Parquet files, and the facts about the read.

    <output>/records/*/*.parquet    the records, see `kafka.py` and `files.py` for the columns
    <output>/read.json              written last: it exists where the read is complete

Reading and judging are separate, so that a run can be judged again without its cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.parquet_schema import read_without_metadata
from streamquake.reports.record.record_json import is_schema, loads

SCHEMA = 1
COMMITTED = "committed"
"""The column of a topic's records that is true for committed records."""


@dataclass(frozen=True, kw_only=True)
class StoredOutput:
    """The folder of one output."""

    path: Path

    @property
    def complete(self) -> bool:
        """Whether the read is complete."""
        return self._facts.is_file()

    def part(self, name: str) -> Path:
        """The folder to write one part of the records to."""
        return self.path / "records" / name

    def frame(self, spark: SparkSession) -> DataFrame:
        """All stored records."""
        folder = literal_path(self.path / "records")
        return read_without_metadata(spark.read.option("recursiveFileLookup", "true"), [folder])

    def rows(self) -> int:
        """The number of stored records, by the metadata of their files."""
        return sum(
            pq.read_metadata(self.path / "records" / name).num_rows for name in self._files()
        )

    def facts(self) -> dict[str, Any]:
        """The facts about the read. Raises ValueError for another schema."""
        facts: dict[str, Any] = loads(self._facts.read_text(encoding="utf-8"))
        if not isinstance(facts, dict):
            raise ValueError(f"{self._facts}: expected an object, found {type(facts).__name__}")
        if not is_schema(facts.get("schema"), SCHEMA):
            raise ValueError(f"{self._facts}: schema {facts.get('schema')}, expected {SCHEMA}")
        return facts

    def lost_files(self) -> str:
        """A message where stored files are missing and no others replace them: their records cannot
        be judged. Empty where none is missing, and for a read that listed no files."""
        listed = self.facts().get("files")
        present = self._files()
        if listed is None or set(present) - set(listed):
            return ""
        missing = sorted(set(listed) - set(present))
        if not missing:
            return ""
        return f"{len(missing)} of {len(listed)} files are missing, such as {missing[0]}"

    def miscount(self, spark: Callable[[], SparkSession]) -> str:
        """A message where the number of stored records differs from that of the read. Empty where
        it is equal, and for a read that did not count. Uncommitted records count separately."""
        facts = self.facts()
        if (counted := facts.get("records")) is None:
            return ""
        frame = self.frame(spark())
        hidden = ~F.col(COMMITTED) if COMMITTED in frame.columns else F.lit(False)
        stored = frame.agg(F.count_if(~hidden), F.count_if(hidden)).first()
        assert stored is not None
        read_counts = (counted, facts.get("uncommitted", 0))
        if tuple(stored) == read_counts:
            return ""
        return (
            f"{_counts_text(*read_counts)} were read, and the record holds {_counts_text(*stored)}"
        )

    def repeated_records(self, spark: Callable[[], SparkSession]) -> int:
        """The number of stored records that repeat the place of another one. A place has one
        record, so these were not read from the output."""
        frame = self.frame(spark())
        is_topic = COMMITTED in frame.columns
        place = ("partition", "offset") if is_topic else ("file", "position")
        committed = F.col(COMMITTED) if is_topic else F.lit(True)
        copies = (
            frame.groupBy(*place)
            .agg(F.count(F.lit(1)).alias("n"), F.count_if(committed).alias("committed"))
            .agg(F.sum(F.least("committed", F.col("n") - 1)))
            .first()
        )
        return int(copies[0] or 0) if copies is not None else 0

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Mark the read as complete, and store the facts about it."""
        document = json.dumps({"schema": SCHEMA, **facts, "files": self._files()}, indent=2)
        self._facts.write_text(document + "\n", encoding="utf-8")

    def _files(self) -> list[str]:
        folder = self.path / "records"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))

    @property
    def _facts(self) -> Path:
        return self.path / "read.json"


def _counts_text(records: int, uncommitted: int) -> str:
    text = f"{records:,} records"
    return f"{text} and {uncommitted:,} uncommitted ones" if uncommitted else text
