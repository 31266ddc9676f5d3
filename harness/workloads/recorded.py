"""A recorded data set: the records of a file are sent in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, model_validator

from streamquake.harness.experiment.outputs import ColumnName
from streamquake.harness.experiment.workload import workloads
from streamquake.harness.workloads.data_sets.column_types import arrow_type
from streamquake.harness.workloads.data_sets.data_set import (
    LINES,
    DataSet,
    read_data_set,
)
from streamquake.harness.workloads.data_sets.own_times import OwnTimes
from streamquake.harness.workloads.data_sets.source_file import SUFFIXES
from streamquake.harness.workloads.data_sets.workload import STORED, DataSetWorkload, RatePerS
from streamquake.harness.workloads.sending.pace import EvenPace, OwnPace, Pace, even_times
from streamquake.reports.record.atomic_files import atomic_replacement
from streamquake.topologies.problems import bad_input


def _known_type(name: str) -> str:
    arrow_type(name)
    return name


ColumnType = Annotated[str, AfterValidator(_known_type)]


DEFAULT_RATE_PER_S = 1000
SHORTEST_S = 0.001
"""A load takes some time, also where all of its records were made at once."""


@workloads.register
class Recorded(DataSetWorkload):
    """The records of a file, in their order, as JSON, CSV, Avro or Protobuf. The columns of
    `sent` are their fields, `index` and `status`. Faults of the data cannot change them."""

    name: ClassVar[str] = "recorded"
    files: ClassVar[tuple[str, ...]] = ("file",)
    describing: ClassVar[tuple[str, ...]] = (
        *DataSetWorkload.describing,
        *("columns", "sha256", "pace", "span_s"),
    )

    file: str
    """JSON lines, CSV whose first line names the fields, Parquet or Avro, by a path from the folder
    of the experiment's document; one gigabyte at most."""
    rate_per_s: RatePerS | None = None
    """Records a second; 1000 by default. `pace` instead sends them as they were made."""
    pace_: Annotated[OwnTimes | None, Field(alias="pace")] = None
    """Send the records at the distances of their own times."""
    columns: Mapping[ColumnName, ColumnType] = {}
    """Field -> type: STRING, BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL(digits, fraction) or JSON. By
    default STRING, BOOLEAN, BIGINT or DOUBLE, where it represents all values exactly, else JSON:
    objects, lists and values of several kinds are the text of their JSON. Fields of CSV are text
    unless given here."""
    records: Annotated[int, Field(ge=1)] | None = None
    """How many records the file must have; any number when left out."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """The checksum that its lines must have, as runs record it; any when left out."""

    span_s: Annotated[float, Field(ge=0)] | None = None
    """How long they take at their own pace, as runs record it; any time when left out."""

    @model_validator(mode="after")
    def _one_pace(self) -> Recorded:
        if self.rate_per_s is not None and self.pace_ is not None:
            raise ValueError("give either `rate_per_s`, or `pace` for their own one")
        return self

    @property
    def _rate_per_s(self) -> int:
        return self.rate_per_s or DEFAULT_RATE_PER_S

    @property
    def seconds(self) -> float:
        if self.pace_ is not None:
            return max(self.span_s or 0.0, SHORTEST_S)
        return (self.records or 0) / self._rate_per_s

    def pace(self, found: DataSet, now_ns: int) -> Pace:
        if self.pace_ is not None:
            return OwnPace(self.pace_.after_ns(found))
        return EvenPace(self._rate_per_s, now_ns)

    def after_ns(self, found: DataSet) -> Sequence[int]:
        if self.pace_ is not None:
            return self.pace_.after_ns(found)
        return even_times(len(found.lines), self._rate_per_s)

    @property
    def planned(self) -> int | None:
        return self.records

    @property
    def types(self) -> Mapping[str, str]:
        return self.columns

    def data_set(self, seed: int) -> DataSet:
        found = read_data_set(Path(self.file), self.columns)
        if self.records not in (None, len(found.lines)):
            raise ValueError(f"it has {len(found.lines):,} records, expected {self.records:,}")
        if self.sha256 not in (None, found.sha256):
            raise ValueError(f"its lines have changed: their checksum is {found.sha256}")
        return found

    def store(self, data: Path, seed: int, indexes: Sequence[int] | None = None) -> None:
        try:
            super().store(data, seed, indexes)
        except ValueError as error:  # the file has changed since the plan was made
            raise bad_input(self.file, str(error)) from error

    def with_files(self, find: Callable[[str], Path]) -> Recorded:
        file = find(self.file).resolve()
        if file.suffix not in SUFFIXES:
            raise ValueError(f"{file}: expected records in a file {', '.join(SUFFIXES)}")
        return self._of(file)

    def with_stored(self, data: Path) -> Recorded:
        return self._of(data / STORED / LINES)

    def written_beside(self, folder: Path) -> Recorded:
        file = folder / "records.jsonl"
        if not file.exists():
            with atomic_replacement(file) as draft:
                draft.write_bytes(b"".join(line + b"\n" for line in self.data_set(0).lines))
        return self.model_copy(update={"file": file.name})

    def _of(self, file: Path) -> Recorded:
        named = self.model_copy(update={"file": str(file)})
        try:
            found = named.data_set(0)
            columns = found.columns(self.columns)
            if self.key is not None and self.key not in columns:
                raise ValueError(f"no record has the field {self.key} of `key`")
            facts: dict[str, Any] = {
                "columns": columns,
                "records": len(found.lines),
                "sha256": found.sha256,
            }
            if self.pace_ is not None:
                facts["span_s"] = self.pace_.after_ns(found)[-1] / 1e9
            load = named.model_copy(update=facts)
            for _ in load.outgoing(found):
                pass
        except (OSError, ValueError) as error:
            raise ValueError(f"{file}: {error}") from error
        return load
