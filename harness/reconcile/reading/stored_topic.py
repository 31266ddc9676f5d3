"""Reads the output of a run from a topic and stores it: the committed records, then all others.

The read is bounded by end offsets that were recorded before, so that a job may still write.
Columns: topic, partition, offset, timestamp_ms, key and value (text), committed (whether a
`read_committed` consumer reads the record), appended (whether the timestamp is the broker's append
time; else it is the producer's). Values of formats other than JSON become JSON, and are in the
column record too (`declared.py`).
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reading.format import Format
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.promised_columns import KAFKA_LANE, KAFKA_POSITION
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, as_json
from streamquake.harness.reconcile.reading.topic_records import NO_STARTS, SCHEMA, topic_records
from streamquake.harness.reconcile.values.declared import stored_columns

ROW_GROUP = 25_000
"""Rows of a row group at least; Spark reads row groups in parallel."""
TEXT = pa.string()
_KEY, _VALUE = (SCHEMA.get_field_index(name) for name in ("key", "value"))
_NO_VALUE = "_no_value"


def read_topic(
    spark: SparkSession,
    brokers: str,
    topic: str,
    *,
    stable_ends: Mapping[int, int],
    ends: Mapping[int, int],
    into: StoredOutput,
    began_ms: int | None = None,
    starts: Mapping[int, int] = NO_STARTS,
    declared_format: Format | None = None,
) -> None:
    """Read a topic from its beginning, or from `starts`, up to its end offsets. `stable_ends` (the
    last stable offsets) bound the committed records, `ends` the others. `began_ms` is the time of
    the run's clock at zero, in epoch milliseconds; it relates timestamps to the history.
    `declared_format` is the format of the values, None for JSON. Raises KafkaUnreachable, BadInput
    for values whose schema `declared_format` lacks."""
    # An earlier transaction that is still open can keep the stable end before the start of the
    # read.
    stable_ends = {n: max(end, starts.get(n, 0)) for n, end in stable_ends.items()}
    committed, others = RecordCounts(), RecordCounts()
    records = topic_records(brokers, topic, stable_ends, committed=True, starts=starts)
    _store(spark, committed.count_in(records), into.part("committed"), declared_format)
    # Without transactions every offset is a committed record.
    if committed.records != sum(end - starts.get(partition, 0) for partition, end in ends.items()):
        records = map(
            committed.without_counted,
            topic_records(brokers, topic, ends, committed=False, starts=starts),
        )
        _store(spark, others.count_in(records), into.part("uncommitted"), declared_format)
    into.finish(
        {
            "kind": "kafka",
            "topic": topic,
            "records": committed.records,
            "uncommitted": others.records,
            "stamped": committed.timestamp_source,
            "began_ms": began_ms,
            "ends": {str(partition): end for partition, end in ends.items()},
            "stable_ends": {str(partition): end for partition, end in stable_ends.items()},
            "starts": {str(partition): start for partition, start in starts.items()},
        }
    )


class RecordCounts:
    """What was read of a topic: the number of records, their offsets and the source of their
    timestamps."""

    def __init__(self) -> None:
        self.records = 0
        self._offsets: dict[int, list[np.ndarray]] = defaultdict(list)
        self._appended: set[bool] = set()

    def count_in(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Count the records of each table while it is read."""
        for table in tables:
            self.records += table.num_rows
            self._appended.update(table["appended"].unique().to_pylist())
            partitions, offsets = _places(table)
            for partition in np.unique(partitions):
                self._offsets[int(partition)].append(offsets[partitions == partition])
            yield table

    def without_counted(self, table: pa.Table) -> pa.Table:
        """The records of a table that were not counted; those of a partition are in their order."""
        partitions, offsets = _places(table)
        other = np.ones(table.num_rows, dtype=bool)
        for partition, parts in self._offsets.items():
            if len(parts) > 1:
                parts[:] = [np.concatenate(parts)]
            rows = partitions == partition
            other[rows] = ~_found(offsets[rows], parts[0])
        return table.filter(pa.array(other))

    @property
    def timestamp_source(self) -> str | None:
        """The source of the records' timestamps: `append` (the broker), `create` (the producer) or
        `mixed`; None without records."""
        if len(self._appended) != 1:
            return "mixed" if self._appended else None
        return "append" if True in self._appended else "create"


def _places(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    return table["partition"].to_numpy(), table["offset"].to_numpy()


def _found(offsets: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Whether each offset is among others, which ascend."""
    at = np.searchsorted(among, offsets).clip(max=len(among) - 1)
    found: np.ndarray = among[at] == offsets
    return found


def _store(
    spark: SparkSession, tables: Iterator[pa.Table], part: Path, declared_format: Format | None
) -> None:
    """Write records as one part of an output; without any, an empty part."""
    if declared_format is None:
        _write(tables, part)
        return
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
