"""Reads the output of a run from a topic and stores it: the committed records, then all others.

The read is bounded by end offsets that were recorded before, so that a job may still write. It may
have several parts: the first is read while the job commits its last records.
Columns: topic, partition, offset, timestamp_ms, key and value (text), committed (whether a
`read_committed` consumer reads the record), appended (whether the timestamp is the broker's append
time; else it is the producer's). Values of formats other than JSON become JSON, and are in the
column record too (`declared.py`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.harness.reconcile.reading.format import Format
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.promised_columns import KAFKA_LANE, KAFKA_POSITION
from streamquake.harness.reconcile.reading.record_counts import RecordCounts
from streamquake.harness.reconcile.reading.stored_output import ROW_GROUP, StoredOutput
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, as_json
from streamquake.harness.reconcile.reading.topic_records import NO_STARTS, SCHEMA, topic_records
from streamquake.harness.reconcile.values.declared import stored_columns

TEXT = pa.string()
PARTS = ("committed", "uncommitted")
_KEY, _VALUE = (SCHEMA.get_field_index(name) for name in ("key", "value"))
_NO_VALUE = "_no_value"


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One part of a read: its offsets, and what was read."""

    starts: Mapping[int, int]
    stable_ends: Mapping[int, int]
    ends: Mapping[int, int]
    committed: RecordCounts = field(default_factory=RecordCounts)
    others: RecordCounts = field(default_factory=RecordCounts)

    @property
    def offsets(self) -> int:
        return sum(end - self.starts.get(partition, 0) for partition, end in self.ends.items())


class TopicRead:
    """A read of a topic from its beginning, or from `starts`, in parts that follow each other.

    `declared_format` is the format of the values, None for JSON.
    """

    def __init__(
        self,
        brokers: KafkaConnection,
        topic: str,
        *,
        into: StoredOutput,
        starts: Mapping[int, int] = NO_STARTS,
        declared_format: Format | None = None,
    ) -> None:
        self._brokers = brokers
        self._topic = topic
        self._into = into
        self._starts = starts
        self._format = declared_format
        self._parts: list[_Part] = []

    def read_until(
        self, spark: SparkSession | None, stable_ends: Mapping[int, int], ends: Mapping[int, int]
    ) -> None:
        """Read the next part. `stable_ends` (the last stable offsets) bound its committed records
        and are where the part after it begins, `ends` bound the others. Only a declared format
        needs Spark. After an error the part can be read again. Raises KafkaUnreachable, BadInput
        for values whose schema the declared format lacks."""
        if self._parts and any(end > stable_ends.get(n, 0) for n, end in self._next.items()):
            self._discard()  # the topic lost records that were read
        starts = self._next
        # An earlier transaction that is still open can keep the stable end before the start.
        stable_ends = {n: max(end, starts.get(n, 0)) for n, end in stable_ends.items()}
        part = _Part(starts=starts, stable_ends=stable_ends, ends=ends)
        folders = self._folders(len(self._parts))
        try:
            self._store(spark, part, *folders)
        except BaseException:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        self._parts.append(part)

    @property
    def _next(self) -> Mapping[int, int]:
        """Where the next part begins."""
        return self._parts[-1].stable_ends if self._parts else self._starts

    def _folders(self, number: int) -> tuple[Path, Path]:
        """The folders of the committed and the other records of a part."""
        committed, uncommitted = (self._into.part(f"{name}{number or ''}") for name in PARTS)
        return committed, uncommitted

    def _discard(self) -> None:
        for number in range(len(self._parts)):
            for folder in self._folders(number):
                shutil.rmtree(folder, ignore_errors=True)
        self._parts.clear()

    def _store(
        self, spark: SparkSession | None, part: _Part, committed: Path, uncommitted: Path
    ) -> None:
        records = self._records(part, part.stable_ends, committed=True)
        _store(spark, part.committed.count_in(records), committed, self._format)
        # Without transactions every offset is a committed record.
        if part.committed.records != part.offsets:
            records = self._records(part, part.ends, committed=False)
            others = map(part.committed.without_counted, records)
            _store(spark, part.others.count_in(others), uncommitted, self._format)

    def _records(
        self, part: _Part, ends: Mapping[int, int], *, committed: bool
    ) -> Iterator[pa.Table]:
        return topic_records(
            self._brokers, self._topic, ends, committed=committed, starts=part.starts
        )

    def finish(self, began_ms: int | None) -> None:
        """Store the facts about the read. `began_ms` is the time of the run's clock at zero, in
        epoch milliseconds; it relates timestamps to the history."""
        last = self._parts[-1]
        self._into.finish(
            {
                "kind": "kafka",
                "topic": self._topic,
                "records": sum(part.committed.records for part in self._parts),
                "uncommitted": sum(part.others.records for part in self._parts),
                "stamped": _timestamp_source(part.committed.appended for part in self._parts),
                "began_ms": began_ms,
                "ends": _by_text(last.ends),
                "stable_ends": _by_text(last.stable_ends),
                "starts": _by_text(self._starts),
            }
        )


def _by_text(offsets: Mapping[int, int]) -> Mapping[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


def _timestamp_source(appended: Iterable[Set[bool]]) -> str | None:
    """The source of the records' timestamps: `append` (the broker), `create` (the producer) or
    `mixed`; None without records."""
    kinds = set[bool]().union(*appended)
    if len(kinds) != 1:
        return "mixed" if kinds else None
    return "append" if True in kinds else "create"


def _store(
    spark: SparkSession | None,
    tables: Iterator[pa.Table],
    part: Path,
    declared_format: Format | None,
) -> None:
    """Write records as one part of an output; without any, an empty part."""
    if declared_format is None:
        _write(tables, part)
        return
    assert spark is not None, "for values that are no JSON"
    with tempfile.TemporaryDirectory(prefix="streamquake-") as folder:
        _write(tables, Path(folder), values=pa.binary())
        raw = spark.read.parquet(literal_path(Path(folder)))
        _as_json(raw, declared_format).write.parquet(str(part))


def _write(tables: Iterator[pa.Table], folder: Path, *, values: pa.DataType = TEXT) -> None:
    """Write tables into a file of a folder. A text is written as it is, even if it is no UTF-8:
    such a record is malformed, not lost."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = SCHEMA.set(_KEY, pa.field("key", TEXT)).set(_VALUE, pa.field("value", values))
    with pq.ParquetWriter(folder / "part-0.parquet", schema) as writer:
        for table in _row_groups(tables):
            columns = [
                pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
                for column, field in zip(table.columns, schema, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=schema))


def _row_groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of at least `ROW_GROUP` rows, except for the last."""
    gathered: list[pa.Table] = []
    for table in tables:
        gathered.append(table)
        if sum(each.num_rows for each in gathered) >= ROW_GROUP:
            yield pa.concat_tables(gathered)
            gathered = []
    if gathered:
        yield pa.concat_tables(gathered)


def _as_json(records: DataFrame, format_: Format) -> DataFrame:
    """The records with their values as JSON. A malformed value becomes text that is no JSON; a
    missing value stays null."""
    columns = [name for name in records.columns if name != "value"]
    place = tuple(f"_{name}" for name in columns)  # a field may be called `key`
    deleted = F.isnull("value").alias(_NO_VALUE)
    raw = records.select("value", deleted, *map(_rename, columns, place))
    table = format_.values(
        raw, (*place, _NO_VALUE), frozenset(), lane=KAFKA_LANE, position=KAFKA_POSITION
    )
    readable = ~F.col(MALFORMED) & ~F.col(_NO_VALUE)
    value = F.when(F.col(MALFORMED), F.col(RAW)).when(readable, as_json(table))
    return table.frame.select(
        *map(_rename, place, columns), *stored_columns(table, value, readable)
    )


def _rename(old: str, new: str) -> Column:
    return F.col(old).alias(new)
