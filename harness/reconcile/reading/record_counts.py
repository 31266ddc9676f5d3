"""Counts the records of a topic while they are read, and finds those that were not counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa


class RecordCounts:
    """What was read of a topic: the number of records, their offsets, and whether their timestamps
    are append times."""

    def __init__(self) -> None:
        self.records = 0
        self.appended: set[bool] = set()
        self._offsets: dict[int, list[np.ndarray]] = defaultdict(list)

    def count_in(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Count the records of each table while it is read."""
        for table in tables:
            self.records += table.num_rows
            self.appended.update(table["appended"].unique().to_pylist())
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


def _places(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    return table["partition"].to_numpy(), table["offset"].to_numpy()


def _found(offsets: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Whether each offset is among others, which ascend."""
    at = np.searchsorted(among, offsets).clip(max=len(among) - 1)
    found: np.ndarray = among[at] == offsets
    return found
