"""Records as they were read from one output: Parquet files, and the facts about the reading.

    <output>/records/*/*.parquet    the records, see `kafka.py` and `files.py` for the columns
    <output>/read.json              written last: it is there when everything was read

Reading and judging are apart, so that a run can be judged again without its cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.parquet_schema import read_without_metadata
from streamquake.reports.record.record_json import is_schema, loads

SCHEMA = 1
COMMITTED = "committed"
"""The column of a topic's records that says whether a reader of committed records sees them."""


@dataclass(frozen=True, kw_only=True)
class StoredOutput:
    """The folder of one output."""

    path: Path

    @property
    def complete(self) -> bool:
        return self._facts.is_file()

    def part(self, name: str) -> Path:
        """Where one part of the records is to be written."""
        return self.path / "records" / name

    def frame(self, spark: SparkSession) -> DataFrame:
        """All records that were read."""
        folder = literal_path(self.path / "records")
        return read_without_metadata(spark.read.option("recursiveFileLookup", "true"), [folder])

    def facts(self) -> dict[str, Any]:
        """What is known about the reading. Raises ValueError for another schema."""
        facts: dict[str, Any] = loads(self._facts.read_text(encoding="utf-8"))
        if not isinstance(facts, dict):
            raise ValueError(f"{self._facts}: expected an object, found {type(facts).__name__}")
        if not is_schema(facts.get("schema"), SCHEMA):
            raise ValueError(f"{self._facts}: schema {facts.get('schema')}, expected {SCHEMA}")
        return facts

    def lost_files(self) -> str:
        """Which files of the reading are gone, where nothing stands in their place: what was in
        them was read, and nobody can judge it. Nothing of readings that listed no files."""
        listed = self.facts().get("files")
        there = self._files()
        if listed is None or set(there) - set(listed):
            return ""
        gone = sorted(set(listed) - set(there))
        return f"{len(gone)} of {len(listed)} files are gone, such as {gone[0]}" if gone else ""

    def miscount(self, spark: Callable[[], SparkSession]) -> str:
        """That fewer records stand here than were read, or more; nothing where all are there, and
        of readings that did not count. Those that only a reader of uncommitted records sees are
        counted apart."""
        facts = self.facts()
        if (counted := facts.get("records")) is None:
            return ""
        frame = self.frame(spark())
        hidden = ~F.col(COMMITTED) if COMMITTED in frame.columns else F.lit(False)
        there = frame.agg(F.count_if(~hidden), F.count_if(hidden)).first()
        assert there is not None
        read = (counted, facts.get("uncommitted", 0))
        if tuple(there) == read:
            return ""
        return f"{_counts_text(*read)} were read, and the record holds {_counts_text(*there)}"

    def repeated(self, spark: Callable[[], SparkSession]) -> int:
        """How many of the records stand here only since their place does so more than once: there
        is one record at each, so that they were not read."""
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
        """Say that everything was read, and what is known about it."""
        document = json.dumps({"schema": SCHEMA, **facts, "files": self._files()}, indent=2)
        self._facts.write_text(document + "\n", encoding="utf-8")

    def _files(self) -> list[str]:
        folder = self.path / "records"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))

    @property
    def _facts(self) -> Path:
        return self.path / "read.json"


def _counts_text(records: int, uncommitted: int) -> str:
    recorded = f"{records:,} records"
    return f"{recorded} and {uncommitted:,} uncommitted ones" if uncommitted else recorded
