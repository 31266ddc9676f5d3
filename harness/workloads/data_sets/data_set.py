"""A data set: the records of a file, each a line with a JSON object."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from kafka.partitioner.default import murmur2

from streamquake.harness.reconcile.reading.stored_output import ROW_GROUP
from streamquake.harness.workloads.data_sets.column_names import reject_names
from streamquake.harness.workloads.data_sets.column_types import (
    JSON,
    arrow_type,
    common_type,
    fits,
    stored,
    type_of,
)
from streamquake.harness.workloads.data_sets.encodings.encoding import Encode
from streamquake.harness.workloads.data_sets.json_line import record_of, shown
from streamquake.harness.workloads.data_sets.source_file import LINE, MAX_BYTES, lines_of

LINES, RECORDS = "lines.parquet", "records.parquet"
"""The files of a stored data set."""


class DataSetRecord(NamedTuple):
    """One record to be sent."""

    index: int  # type: ignore[assignment]  # a record's number, not tuple.index
    key: str | None
    partition: int
    text: bytes | None
    topic: str | None = None
    """Its topic, where a load has several."""

    def value(self) -> bytes | None:
        return self.text


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """The lines of a data set that was read."""

    lines: Sequence[bytes]
    sha256: str
    """Of the lines, each with its end."""

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> DataSet:
        """The data set with these lines."""
        held = list(lines)
        return cls(lines=held, sha256=_digest(held))

    def columns(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """Column -> type of all fields: the types `given`, else the narrowest for all values.
        Raises ValueError with the number of a record that has a value which does not fit, or that
        is no JSON object."""
        types: dict[str, str | None] = {}
        for _, record in self.records():
            for name, value in record.items():
                known = types.setdefault(name, given.get(name))
                if value is not None and name not in given:
                    kind = type_of(value)
                    types[name] = kind if known is None else common_type(known, kind)
        if not types:
            raise ValueError("its records have no fields")
        if unknown := [name for name in given if name not in types]:
            raise ValueError(f"no record has the field {unknown[0]} of `columns`")
        reject_names(types)
        return self._fitting({name: kind or "STRING" for name, kind in types.items()}, given)

    def _fitting(self, types: dict[str, str], given: Mapping[str, str]) -> Mapping[str, str]:
        """The types, or JSON where a value does not fit the type of all. Raises ValueError for one
        that does not fit a given type."""
        for number, record in self.records():
            for name, value in record.items():
                if not fits(types[name], value):
                    if name in given:
                        raise ValueError(
                            f"record {number}: {name} is {shown(value)}, which is not exactly "
                            f"representable as {given[name]}"
                        )
                    types[name] = JSON
        return types

    def outgoing(
        self,
        key: str | None,
        partitions: int,
        encode: Encode | None = None,
        tombstone: str | None = None,
    ) -> Iterator[DataSetRecord]:
        """The records with their keys and partitions: that of the key, as Java's client chooses it,
        or in turn. Their values are the lines, or what `encode` makes of the records; one in which
        the field `tombstone` is true has none. Raises ValueError for a key that is neither text nor
        a whole number, for a record without key and value, and for one that cannot be encoded."""
        for index, (name, value) in enumerate(self._keys_and_values(key, encode, tombstone)):
            yield DataSetRecord(index, name, _partition(index, name, partitions), value)

    def store(
        self, folder: Path, columns: Mapping[str, str], indexes: Sequence[int] | None = None
    ) -> None:
        """Write the lines, to be sent again, and the records with these columns, for the verdict.
        `indexes` has the index of each record; by default it is its number, from 0."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = pa.table({"line": pa.array(self.lines, pa.binary())}, schema=LINE)
        pq.write_table(lines, folder / LINES, row_group_size=ROW_GROUP)
        schema = schema_of(columns)
        with pq.ParquetWriter(folder / RECORDS, schema) as writer:
            records = self.records()
            while part := list(itertools.islice(records, ROW_GROUP)):
                rows = {
                    name: [stored(kind, record.get(name)) for _, record in part]
                    for name, kind in columns.items()
                }
                numbers = [number - 1 for number, _ in part]
                rows["index"] = numbers if indexes is None else [indexes[n] for n in numbers]
                writer.write_table(pa.table(rows, schema=schema))

    def _keys_and_values(
        self, key: str | None, encode: Encode | None, tombstone: str | None
    ) -> Iterator[tuple[str | None, bytes | None]]:
        if key is None and encode is None:
            yield from ((None, line) for line in self.lines)
            return
        for number, record in self.records():
            try:
                name = None if key is None else _key_of(record, key)
                if tombstone is not None and record.get(tombstone) is True:
                    if name is None:
                        raise ValueError("a record without a value needs a key")
                    yield name, None
                else:
                    yield name, self.lines[number - 1] if encode is None else encode(record)
            except ValueError as error:
                raise ValueError(f"record {number}: {error}") from error

    def records(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The number of each line, from 1, and its record. Raises ValueError."""
        for number, line in enumerate(self.lines, start=1):
            try:
                yield number, record_of(line)
            except ValueError as error:
                raise ValueError(f"record {number}: {error}") from error


def schema_of(columns: Mapping[str, str]) -> pa.Schema:
    """The schema of stored records with these columns and types."""
    fields = [(name, arrow_type(kind)) for name, kind in columns.items()]
    return pa.schema([*fields, ("index", pa.int64())])


def read_data_set(file: Path, columns: Mapping[str, str] = MappingProxyType({})) -> DataSet:
    """The data set in a file, or in one that `DataSet.store` wrote. `columns` has the types of the
    fields of CSV. Raises OSError, and ValueError for a file that is too large, or has no or other
    records."""
    if (size := file.stat().st_size) > MAX_BYTES:
        raise ValueError(f"{size:,} bytes are more than {MAX_BYTES:,}; send a part of it")
    if not (lines := lines_of(file, columns)):
        raise ValueError("it has no records")
    return DataSet.of(lines)


def _digest(lines: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
        digest.update(b"\n")
    return digest.hexdigest()


def _key_of(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise ValueError(f"the key {key} is {shown(value)}; expected text or a whole number")
    return None if value is None else str(value)


def _partition(index: int, key: str | None, partitions: int) -> int:
    if key is None:
        return index % partitions
    return int(murmur2(key.encode()) & 0x7FFFFFFF) % partitions
