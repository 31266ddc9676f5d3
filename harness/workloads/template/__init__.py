"""Records by a template: each field is a sequence, a choice, a time, an object and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from streamquake.harness.experiment.outputs import ColumnName
from streamquake.harness.experiment.workload import workloads
from streamquake.harness.workloads.data_sets.column_names import reject_names
from streamquake.harness.workloads.data_sets.data_set import DataSet
from streamquake.harness.workloads.data_sets.json_line import MAX_LINE_BYTES, json_text
from streamquake.harness.workloads.data_sets.source_file import MAX_BYTES
from streamquake.harness.workloads.data_sets.workload import STORED, DataSetWorkload, RatePerS
from streamquake.harness.workloads.sending.pace import EvenPace, Pace, even_times
from streamquake.harness.workloads.template.fields import (
    FieldTemplate,
    fields_beyond_calendar,
    records_of,
    wrong_references,
)
from streamquake.harness.workloads.template.sizes import longest_object
from streamquake.topologies.problems import bad_input

KEY_TYPES = ("STRING", "BIGINT")
SAMPLE = 200
"""So many records are encoded when the document is read, and all before a run."""


@workloads.register
class Template(DataSetWorkload):
    """Records of any shape, as JSON, CSV, Avro or Protobuf: a function of the seed. The columns of
    `sent` are the fields, `index` and `status`; an object or a list is the text of its JSON, for
    `get_json_object` and `from_json`. Faults of the data cannot change them."""

    name: ClassVar[str] = "template"

    records: Annotated[int, Field(ge=1, le=10_000_000)]
    """How many records are sent. They are held in memory."""
    rate_per_s: RatePerS
    """Records a second."""
    fields: Annotated[
        Mapping[ColumnName, FieldTemplate],
        Field(min_length=1, examples=[{"id": {"sequence": {}}}]),
    ]
    """Field -> what it holds; in this order."""

    @model_validator(mode="after")
    def _well_formed(self) -> Template:
        reject_names(self.fields)
        if wrong := next(wrong_references(self.fields), None):
            raise ValueError(wrong)
        if beyond := next(fields_beyond_calendar(self.fields, self.records), None):
            raise ValueError(
                f"{beyond}: expected times from the year 1 to 9999; change start, step_ms, "
                "disorder_ms or records, or take `form: ms`"
            )
        self._reject_large(longest_object(self.fields))
        if self.key is not None and not self._has_plain(self.key):
            raise ValueError(
                f"key: expected a field that is text or a whole number, got {self.key}"
            )
        return self

    def _reject_large(self, longest: int) -> None:
        """Raise ValueError where a record may be too long to be sent, or all too large."""
        if longest > MAX_LINE_BYTES:
            raise ValueError(
                f"fields: a record may have {longest:,} bytes; records of up to "
                f"{MAX_LINE_BYTES:,} are sent"
            )
        if (size := longest * self.records) > MAX_BYTES:
            raise ValueError(
                f"records: {self.records:,} of up to {longest:,} bytes may need {size:,} bytes of "
                f"memory; {MAX_BYTES:,} are allowed"
            )

    def _has_plain(self, name: str) -> bool:
        """Whether a field of this name is text or a whole number."""
        return self.types.get(name) in KEY_TYPES

    @property
    def planned(self) -> int:
        return self.records

    @property
    def seconds(self) -> float:
        return self.records / self.rate_per_s

    def pace(self, found: DataSet, now_ns: int) -> Pace:
        return EvenPace(self.rate_per_s, now_ns)

    def after_ns(self, found: DataSet) -> Sequence[int]:
        return even_times(self.records, self.rate_per_s)

    @property
    def types(self) -> Mapping[str, str]:
        return {name: field.generator.type for name, field in self.fields.items()}

    def with_files(self, find: Callable[[str], Path]) -> Template:
        first = self.model_copy(update={"records": min(self.records, SAMPLE)})
        self.check_encoding(first.data_set(0))
        return self

    def store(self, data: Path, seed: int, indexes: Sequence[int] | None = None) -> None:
        try:
            self.check_encoding(found := self.data_set(seed))
        except ValueError as error:  # a record beyond the first ones
            raise bad_input(f"workload.{self.name}", str(error)) from error
        found.store(data / STORED, self.types, indexes)

    def data_set(self, seed: int) -> DataSet:
        made = records_of(self.fields, self.records, seed)
        return DataSet.of(json_text(record).encode() for record in made)
