"""The records of one output as they were read: Parquet files, and the facts about the read.

    <output>/records/*/*.parquet    the records, see `kafka.py` and `files.py` for the columns
    <output>/read.json              written last: it exists where the read is complete

Reading and judging are separate, so that a run can be judged again without its cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from streamquake.harness.reconcile.reading.hidden_files import is_hidden
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.parquet_schema import read_without_metadata
from streamquake.reports.record.record_json import is_schema, loads

SCHEMA = 1
ROW_GROUP = 25_000
"""Rows of a row group; Spark reads row groups in parallel."""
COMMITTED = "committed"
"""The column of a topic's records that is true for committed records."""

MOST_OFFSETS = 2**40
"""More than a partition of a run has; with its number it tells a place."""


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

    def of_another(self, place: str) -> str:
        """A message where another topic or folder than this one was read; empty where it was this
        one, and for a read that noted none."""
        facts = self.facts()
        read = facts.get("topic", facts.get("source"))
        return f"{read} was read, and the output is {place}" if read not in (None, place) else ""

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

    def miscount(self) -> str:
        """A message where the number of stored records differs from that of the read. Empty where
        it is equal, and for a read that did not count. Uncommitted records count separately."""
        facts = self.facts()
        if (counted := facts.get("records")) is None:
            return ""
        read_counts = (counted, facts.get("uncommitted", 0))
        if (stored := self._counts()) == read_counts:
            return ""
        were_read, are_stored = _counts_text(*read_counts), _counts_text(*stored)
        return f"{were_read} were read, and the record holds {are_stored}"

    def misplaced(self) -> str:
        """A message where a record of a topic is one of another topic, or is stored without an
        offset, at one that was not read, or, a committed one, behind the last stable offset. Empty
        where there is none, and for a read that noted no ends."""
        facts = self.facts()
        if not self.is_topic or (ends := facts.get("ends")) is None:
            return ""
        if (read := facts.get("topic")) is not None and (others := self._topics() - {read}):
            return f"a record is stored as one of {min(map(str, others))}, and {read} was read"
        starts, stable_ends = facts.get("starts", {}), facts.get("stable_ends", ends)
        for place in self._places():
            partition = str(place["partition"])
            start, end = starts.get(partition, 0), ends.get(partition, 0)
            where = f"of partition {partition}, of which {start:,} to {end:,} were read"
            if place["known"] != place["records"]:
                return f"{place['records'] - place['known']:,} records have no offset {where}"
            if place["first"] < start or place["last"] >= end:
                wrong = place["first"] if place["first"] < start else place["last"]
                return f"a record is stored at offset {wrong:,} {where}"
            stable_end, committed = stable_ends.get(partition, 0), place["committed"]
            if committed is not None and committed >= stable_end:
                return (
                    f"a committed record is stored at offset {committed:,} {where}, and committed "
                    f"readers could read only up to {stable_end:,}"
                )
        return ""

    def unplaced(self) -> int:
        """How many records of a topic are stored without an offset, or at one that was not read:
        their place in the order of the others is not known."""
        facts = self.facts()
        places = self.columns("partition", "offset")
        starts, ends = facts.get("starts", {}), facts["ends"]
        placed = 0
        for partition in pc.unique(places["partition"]).to_pylist():
            offsets = places.filter(pc.equal(places["partition"], partition))["offset"]
            start, end = (which.get(str(partition), 0) for which in (starts, ends))
            was_read = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
            placed += pc.sum(was_read).as_py() or 0
        return int(places.num_rows - placed)

    def ends_without_records(self) -> str:
        """A message where a topic ends behind its last record, although every offset before holds
        one, as in a topic without transactions. Empty where there is none, and for a read that
        noted no ends."""
        facts = self.facts()
        if not self.is_topic or (ends := facts.get("ends")) is None:
            return ""
        starts = facts.get("starts", {})
        behind = {partition: starts.get(partition, 0) for partition in ends}
        for place in self._places():
            partition, known = str(place["partition"]), place["known"]
            start = behind.get(partition, 0)
            if place["first"] != start or place["last"] != start + known - 1:
                return ""
            behind[partition] = start + known
        for partition, end in ends.items():
            if behind[partition] < end:
                return (
                    f"no record of partition {partition} is stored behind offset "
                    f"{behind[partition] - 1:,}, and it was read up to {end:,}"
                )
        return ""

    def repeats_places(self) -> bool:
        """Whether records of a topic share an offset: `repeated_records` counts them. Sorting takes
        a tenth of a second for a million records; counting them takes ten times as long."""
        if not self.is_topic:
            return False
        places = self.columns("partition", "offset").drop_null()
        partition = places["partition"].cast(pa.int64())
        position = pc.add(pc.multiply(partition, MOST_OFFSETS), places["offset"])
        return bool((np.diff(np.sort(position.to_numpy())) == 0).any())

    def _topics(self) -> set[str | None]:
        """The topics of the stored records, by their own column; none without that column."""
        if "topic" not in self._column_names():
            return set()
        return set(pc.unique(self.columns("topic")["topic"]).to_pylist())

    def _places(self) -> Sequence[Mapping[str, Any]]:
        """The offsets of each partition: of how many records, the known ones, the first, the last
        and the last one of a committed record."""
        places = self.columns("partition", "offset", COMMITTED)
        offset = places["offset"]
        of_committed = pc.if_else(places[COMMITTED], offset, pa.scalar(None, offset.type))
        found = (
            places.append_column("of_committed", of_committed)
            .group_by("partition")
            .aggregate(
                [
                    ([], "count_all"),
                    *(("offset", how) for how in ("count", "min", "max")),
                    ("of_committed", "max"),
                ]
            )
        )
        names = {
            "count_all": "records",
            "offset_count": "known",
            "offset_min": "first",
            "offset_max": "last",
            "of_committed_max": "committed",
        }
        named = found.rename_columns([names.get(n, n) for n in found.column_names])
        places_of: list[dict[str, Any]] = named.to_pylist()
        return places_of

    def _counts(self) -> tuple[int, int]:
        """How many committed and how many uncommitted records are stored."""
        rows = sum(file.metadata.num_rows for file in self._parquet_files())
        flags = self.columns(COMMITTED) if self.is_topic else None
        uncommitted = flags.num_rows - (pc.sum(flags[COMMITTED]).as_py() or 0) if flags else 0
        return rows - uncommitted, uncommitted

    @property
    def is_topic(self) -> bool:
        """Whether the records have the columns of a topic, by their first file."""
        return COMMITTED in self._column_names()

    @property
    def is_table(self) -> bool:
        """Whether the records have the columns of rows of a table, by their first file."""
        return "row" in self._column_names()

    def _column_names(self) -> Sequence[str]:
        """The columns of the first file; none without a file."""
        first = next(self._parquet_files(), None)
        return () if first is None else first.schema_arrow.names

    def columns(self, *names: str) -> pa.Table:
        """Some columns of all stored records, in memory. Raises pyarrow's errors for a column that
        a file lacks."""
        return pa.concat_tables(
            file.read(columns=list(names)).select(names) for file in self._parquet_files()
        )

    def repeated_records(self) -> int:
        """The number of stored records that repeat the place of another one. A place has one
        record, so these were not read from the output."""
        if self.is_topic:
            records = self.columns("partition", "offset", COMMITTED)
        else:
            records = self.columns(*(("table", "row") if self.is_table else ("file", "position")))
            records = records.append_column(COMMITTED, pa.repeat(True, records.num_rows))
        *place, flag = records.column_names
        copies = records.group_by(place).aggregate([([], "count_all"), (flag, "sum")])
        committed = pc.fill_null(copies[f"{flag}_sum"], 0)
        surplus = pc.min_element_wise(pc.subtract(copies["count_all"], 1), committed)
        return pc.sum(surplus).as_py() or 0

    def _parquet_files(self) -> Iterator[pq.ParquetFile]:
        """The files that Spark reads. Raises ValueError for a link, which no read writes."""
        folder = self.path / "records"
        for path in sorted(folder.rglob("*")):
            if path.is_symlink():
                raise ValueError(f"{path} is a link")
            if path.is_file() and not is_hidden(path.relative_to(folder)):
                with pq.ParquetFile(path) as file:
                    yield file

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
